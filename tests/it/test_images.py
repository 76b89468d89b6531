"""The images for real: built with the classic builder on a base that is here, run in the sandbox of the matrix."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
LABEL = "appserver-matrix.run=test-images"
OFFICIAL = "python:3.13-slim-trixie"
SECRET = "trace-of-the-host"
Build = Callable[..., str]


def docker(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"DOCKER_BUILDKIT": "0"}
    return subprocess.run(["docker", *argv], text=True, capture_output=True, check=check, env=env)


def image_ids(*filters: str) -> list[str]:
    return docker("image", "ls", "--quiet", *(f"--filter={text}" for text in filters)).stdout.split()


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """The official image or the slim stand-in where one is here, else a stand-in that is made for these tests."""
    if shutil.which("docker") is None or docker("info", check=False).returncode:
        pytest.skip("no Docker Engine")
    found = image_ids(f"reference={OFFICIAL}") or image_ids("reference=appserver-matrix/standin-slim:py3.13-*")
    if found:
        yield found[0]
        return
    made = subprocess.Popen(["bash", str(ROOT / "images/bases/rootfs.sh"), "slim"], stdout=subprocess.PIPE)
    image = subprocess.run(
        ["docker", "import", "-c", f"LABEL {LABEL}", "-"],
        stdin=made.stdout,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.wait() == 3:
        pytest.skip("no slim base is here, and none can be made (rootfs.sh says why)")
    assert made.returncode == 0 and image.returncode == 0, image.stderr
    yield image.stdout.strip()
    docker("image", "rm", image.stdout.strip(), check=False)


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of images/ whose CA bundle is that of this machine with a line to look for."""
    folder = tmp_path_factory.mktemp("context") / "images"
    shutil.copytree(ROOT / "images", folder, ignore=shutil.ignore_patterns("__pycache__", "ca.crt"))
    bundle = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
    (folder / "host/ca.crt").write_text(f"# {SECRET}\n" + (bundle.read_text() if bundle.exists() else ""))
    return folder


@pytest.fixture(scope="session")
def build(base: str, context: Path) -> Iterator[Build]:
    """Builds a flavour and gives the image's id; all that was built goes away at the end."""
    # Nobody listens on the second index: pip passes over it, and its name must not stay in an image.
    host = {"PIP_EXTRA_INDEX_URL": f"http://{SECRET}@127.0.0.1:9/simple", "PIP_RETRIES": "0"}

    def run(dockerfile: str, folder: Path = context, target: str = "", **arguments: str) -> str:
        pairs = {"BASE": base, **host, **arguments}
        argv = [f"--build-arg={name}={value}" for name, value in pairs.items()]
        argv += [f"--target={target}", f"--file={folder / dockerfile / 'Dockerfile'}"]
        done = docker("build", "--quiet", "--force-rm", f"--label={LABEL}", *argv, str(folder), check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    yield run
    for image in image_ids(f"label={LABEL}"):
        docker("image", "rm", "--force", image, check=False)


def in_image(image: str, *argv: str) -> str:
    sandbox = ["--network=none", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    return docker("run", "--rm", f"--label={LABEL}", *sandbox, image, *argv).stdout


def install_json(image: str) -> dict[str, object]:
    content: dict[str, object] = json.loads(in_image(image, "cat", "/opt/venv/install.json"))
    return content


def layers(image: str) -> list[str]:
    found: list[str] = json.loads(docker("image", "inspect", image).stdout)[0]["RootFS"]["Layers"]
    return found


ASK = """
import subprocess, sys, time, urllib.request
server = subprocess.Popen(sys.argv[1:])
for _ in range(100):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8000/items/42", timeout=5).read().decode())
        break
    except OSError:
        time.sleep(0.1)
server.kill()
"""


def test_a_server_installs_and_serves_in_the_sandbox_as_nobody_special(build: Build) -> None:
    image = build("server", PACKAGES="uvicorn==0.54.0 httptools==0.9.0", COMPILED="httptools")
    report = install_json(image)
    assert (report["outcome"], report["mode"], report["error"]) == ("wheel", "wheel", None)
    packages = report["packages"]
    assert isinstance(packages, list)
    assert {package["name"] for package in packages} == {"uvicorn", "h11", "httptools"}  # click is the frameworks'
    answer = in_image(image, "python", "-c", ASK, "uvicorn", "--port", "8000", "--http", "httptools", "raw_asgi:app")
    assert '{"item_id":42,"q":null}' in answer.splitlines()
    assert in_image(image, "id", "-u").strip() == "1000"


def test_the_final_image_has_no_trace_of_the_host(build: Build, tmp_path: Path) -> None:
    image = build("server", PACKAGES="uvicorn==0.54.0 httptools==0.9.0", COMPILED="httptools")
    history = docker("history", "--no-trunc", image).stdout
    inspected = docker("image", "inspect", image).stdout
    assert not [word for word in (SECRET, "PIP_", "ca.crt") if word in history or word in inspected]
    archive = tmp_path / "image.tar"
    docker("save", "--output", str(archive), image)
    assert subprocess.run(["grep", "-c", SECRET, str(archive)], check=False).returncode == 1


def test_an_install_that_fails_is_an_image_with_the_reason(build: Build) -> None:
    image = build("server", PACKAGES="bjoern==3.2.2", COMPILED="bjoern", RUN_SYSTEM="")
    report = install_json(image)
    assert (report["outcome"], report["packages"], report["size_added"]) == ("failed", [], 0)
    assert report["error"] == {
        "kind": "no_wheel",
        "line": "ERROR: Could not find a version that satisfies the requirement bjoern==3.2.2 (from versions: none)",
    }


def test_servers_share_base_and_frameworks(build: Build, base: str) -> None:
    first = build("server", PACKAGES="waitress==3.0.2")
    one = layers(first)
    two = layers(build("server", PACKAGES="cheroot==11.1.2"))
    staged = layers(build("server-multistage", PACKAGES="waitress==3.0.2", BUILD_BASE=base))
    frameworks = len(layers(base)) + 1  # WORKDIR makes a layer before them on some builders
    assert one[:frameworks] == two[:frameworks] == staged[:frameworks]
    assert layers(build("server", target="server", PACKAGES="waitress==3.0.2"))[:frameworks] == one[:frameworks]
    assert build("server", PACKAGES="waitress==3.0.2") == first


@pytest.fixture
def closed(context: Path, tmp_path: Path) -> Path:
    """The parts of the project that images are made of, as a checkout under umask 077 leaves them."""
    folder = tmp_path / "project"
    shutil.copytree(context, folder / "images")
    for name in ("loadgen", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)
    return folder


def test_a_checkout_that_only_its_owner_reads_makes_images_whose_user_reads_all(build: Build, closed: Path) -> None:
    server = build("server", closed / "images", PACKAGES="waitress==3.0.2")
    unreadable = "find /opt/{} /opt/venv ! -readable -o -type d ! -executable"
    assert in_image(server, "sh", "-c", unreadable.format("apps")) == ""
    in_image(server, "python", "-c", "import flask_app, raw_asgi, launch")
    ask = f"{unreadable.format('loadgen')}; /opt/venv/bin/python -c 'import loadgen'"
    run = ["run", "--rm", f"--label={LABEL}", "--network=none", "--entrypoint=sh", build("images/loadgen", closed)]
    assert docker(*run, "-c", ask).stdout == ""


def test_the_frameworks_keep_their_versions(build: Build) -> None:
    image = build("server", PACKAGES="starlette==0.30.0")
    report = install_json(image)
    error = report["error"]
    assert isinstance(error, dict)
    assert (report["outcome"], error["kind"]) == ("failed", "conflict")
