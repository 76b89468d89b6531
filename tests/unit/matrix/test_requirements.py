"""Whatever stands in `install` is one pinned requirement in one spelling, or a mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from orchestrator.errors import SpecError, SpecErrors
from orchestrator.images.plan import image_of
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import parse_matrix
from orchestrator.matrix.mistake import WrongText
from orchestrator.matrix.requirement import distribution_name, pinned, pinned_versions
from orchestrator.matrix.resolved import Variant, catalogue
from orchestrator.tools.wheels import distributions

SMALL = (Path(__file__).parents[2] / "cases" / "small.matrix.yaml").read_text(encoding="utf-8")
INSTALL = "install: [waitress==3.0.2]"

PIECES = st.sampled_from([
    "uvicorn", "Mod_WSGI", "a.b", "[", "]", "standard", ",", "==", "===", "=", ">=", "~=", "!=", "0.54.0", "0.54.*",
    "1!2", "+cu1", "rc1", "v", " ", "\t", "\n", ";", "python_version", "'3.13'", "(", ")", "@", "https://x/y", "#", "-",
    "--pre", "--hash=sha256:0", "é", "\u2028", "\x00", "9" * 30, "*", "\\", '"',
])  # fmt: skip
TEXTS = st.text(max_size=40) | st.lists(PIECES, max_size=10).map("".join)


def _variant(install: str) -> Variant:
    (variant,) = catalogue(parse_matrix(SMALL.replace(INSTALL, install)).matrix)
    return variant


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("uvicorn == 0.54.0", "uvicorn==0.54.0"),
        (" Uvicorn [Standard, some_thing] ==0.54.0 ", "uvicorn[some-thing,standard]==0.54.0"),
        ("zope.interface==7.0", "zope-interface==7.0"),
        ("gunicorn_h1c (==0.6.10)", "gunicorn-h1c==0.6.10"),
        ("a==1!2.0", "a==1!2.0"),
        ("a==1.0+CU1", "a==1.0+cu1"),
        ("a==1.0-RC1", "a==1.0rc1"),
        ("a==2.0.30.post1", "a==2.0.30.post1"),
        ("a==1.0.0", "a==1.0.0"),
    ],
)
def test_requirement_has_one_spelling(text: str, wanted: str) -> None:
    assert pinned(text) == wanted


@given(TEXTS)
@example("a==" + "9" * 5000)
@example("a; " + "(" * 190)
@example("a==1; extra == 'x'")
@example("git+https://example.org/a.git@main")
@settings(max_examples=300, deadline=2000)
def test_any_text_is_pinned_or_refused(text: str) -> None:
    try:
        found = pinned(text)
    except WrongText as error:
        what, near, step = error.words
        assert what
        assert near or step
        assert not near or pinned(near) == near
        return
    assert found == pinned(found)
    assert found.split() == [found]
    requirement = Requirement(found)
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    assert pinned_versions([found]) == {requirement.name: str(Version(specifier.version))}


@given(TEXTS)
@settings(max_examples=100, deadline=2000)
def test_any_text_in_the_file_is_pinned_or_a_mistake_with_its_line(text: str) -> None:
    quoted = yaml.safe_dump(text, default_style='"', width=99999).strip()
    line = SMALL.splitlines().index(f"    {INSTALL}") + 1
    try:
        parse_matrix(SMALL.replace(INSTALL, f"install: [{quoted}]"))
    except SpecErrors as several:
        assert {error.place.line for error in several.errors} == {line}
    except SpecError as one:
        assert one.place.line == line


@given(TEXTS)
@settings(max_examples=100)
def test_any_text_is_the_name_of_a_distribution_or_refused(text: str) -> None:
    try:
        found = distribution_name(text)
    except WrongText as error:
        assert not error.words[1] or distribution_name(error.words[1])
        return
    assert found == distribution_name(found)
    assert found.replace("-", "").isalnum()


def test_build_gets_requirements_without_blanks() -> None:
    text = SMALL.replace(INSTALL, 'install: ["waitress == 3.0.2", "Flask_Extra [ a ] == 1"]')
    matrix = parse_matrix(text).matrix
    spec = image_of(matrix, expand(matrix, "quick").cells[0])
    assert spec.build_args()["PACKAGES"] == "waitress==3.0.2 flask-extra[a]==1"
    assert spec.build_args()["COMPILED"] == "waitress flask-extra"
    assert distributions(matrix, ["waitress"]) == {"waitress": "3.0.2", "flask-extra": "1"}


@pytest.mark.parametrize(
    ("install", "package"),
    [
        (INSTALL, "waitress"),
        ("install: [other==1, Waitress==3.0.2]", "waitress"),
        ("install: [other==1, more==2]", "other"),
        ("install: [other==1, More_Of.It==2]\n    package: more_of-it", "more-of-it"),
    ],
)
def test_entry_names_its_package_or_it_is_the_likely_one(install: str, package: str) -> None:
    variant = _variant(install)
    assert variant.package == package
    assert variant.declares.server == package


def test_declared_server_goes_before_the_package() -> None:
    text = SMALL.replace("threads: {}", "threads: {declares: {server: Mod_WSGI}}")
    (variant,) = catalogue(parse_matrix(text).matrix)
    assert (variant.package, variant.declares.server) == ("waitress", "mod-wsgi")


def test_variants_package_goes_before_its_servers() -> None:
    text = SMALL.replace(INSTALL, "install: [a==1, b==2]\n    package: b").replace(
        "threads: {}", "threads: {package: a}"
    )
    (variant,) = catalogue(parse_matrix(text).matrix)
    assert variant.package == "a"
