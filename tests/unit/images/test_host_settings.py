"""pip's own settings reach builds as pip reads them: lists, sections, environment before files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import EnvironmentProblem
from orchestrator.images.host import HostSettings, host_settings, pip_options

TWO_INDEXES = Path(__file__).parents[2] / "cases" / "pip" / "two-indexes.conf"
BOTH = "http://127.0.0.1:8902/simple http://127.0.0.1:8903/simple"
Read = Callable[..., HostSettings]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Read]:
    """The settings of a pip.conf, or of its text, as real pip tells them, with more environment variables."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)

    def with_file(conf: Path | str, **environment: str) -> HostSettings:
        path = conf if isinstance(conf, Path) else tmp_path / "pip.conf"
        if isinstance(conf, str):
            path.write_text(conf)
        for name, text in {"PIP_CONFIG_FILE": str(path), **environment}.items():
            monkeypatch.setenv(name, text)
        host_settings.cache_clear()
        return host_settings()

    yield with_file
    host_settings.cache_clear()


def test_every_list_of_pip_is_separated_by_blanks(read: Read) -> None:
    links = "find-links =\n  https://example.org/a\n  /no/folder\n  https://example.org/b\n"
    settings = read(TWO_INDEXES.read_text() + links)
    assert settings.build_args()["PIP_EXTRA_INDEX_URL"] == BOTH
    assert settings.build_args()["PIP_TRUSTED_HOST"] == "127.0.0.1 localhost"
    assert settings.build_args()["PIP_FIND_LINKS"] == "https://example.org/a https://example.org/b"
    uv = settings.uv_environment()
    assert (uv["UV_INDEX"], uv["UV_INSECURE_HOST"]) == (BOTH, "127.0.0.1 localhost")
    assert uv["UV_FIND_LINKS"] == "https://example.org/a,https://example.org/b"
    assert uv["UV_INDEX_STRATEGY"] == "unsafe-best-match"


def test_environment_goes_before_files_and_an_empty_value_does_not_count(read: Read) -> None:
    settings = read(TWO_INDEXES, PIP_EXTRA_INDEX_URL="https://example.org/simple", PIP_TRUSTED_HOST="")
    assert settings.pip["extra-index-url"] == "https://example.org/simple"
    assert settings.pip["trusted-host"] == "127.0.0.1 localhost"


def test_sections_of_the_commands_go_before_the_global_one(read: Read) -> None:
    settings = read(
        "[download]\nretries = 3\n[global]\nretries = 1\ntimeout = 20\n[install]\nretries = 2\n[list]\nretries = 9\n"
    )
    assert (settings.pip["retries"], settings.pip["default-timeout"]) == ("3", "20")


def test_quotes_and_percents_stay(read: Read) -> None:
    url = "https://user:p%40'\"w@example.org/simple"
    assert read(f"[global]\nindex-url = {url}\n").pip["index-url"] == url


def test_configuration_that_pip_cannot_read_is_told(read: Read) -> None:
    with pytest.raises(EnvironmentProblem, match=r"pip cannot read its configuration: .*pip\.conf"):
        read("[global\n")


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1), min_size=1))
def test_any_list_is_read_as_pip_prints_it(items: list[str]) -> None:
    printed = f"global.extra-index-url={chr(10).join(['', *items])!r}\n"
    assert pip_options(printed) == {"extra-index-url": " ".join(items)}


def test_pips_proxy_reaches_builds_and_uv(read: Read) -> None:
    settings = read("[global]\nproxy = http://proxy.invalid:3128\n")
    assert settings.build_args()["PIP_PROXY"] == "http://proxy.invalid:3128"
    found = settings.uv_environment()
    assert found["HTTPS_PROXY"] == found["HTTP_PROXY"] == "http://proxy.invalid:3128"
