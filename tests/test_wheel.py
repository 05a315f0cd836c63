"""What the wheel holds; .ci/run installs it beside tests/hostile, a project whose modules have the names of ours."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from traces.packaging import PACKAGES, moved

ROOT = Path(__file__).parents[1]
SOURCE = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "enablekit", *PACKAGES)
OWN_IMPORT = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(PACKAGES)})\b", re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The files of the wheel of this source, unpacked."""
    directory = tmp_path_factory.mktemp("wheel")
    (directory / "source").mkdir()
    for name in SOURCE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, directory / "source" / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, directory / "source"]
    subprocess.run(build, check=True, capture_output=True)
    with zipfile.ZipFile(next(directory.glob("*.whl"))) as archive:
        archive.extractall(directory / "unpacked")
    return directory / "unpacked"


def test_it_has_one_package_at_the_top_level(wheel):
    names = {path.name for path in wheel.iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"enablekit"}
    metadata = next(wheel.glob("*.dist-info"))
    assert (metadata / "top_level.txt").read_text().split() == ["enablekit"]


def test_it_has_every_file_that_the_packages_have(wheel):
    toolkit = wheel / "enablekit" / "_toolkit"
    for package in PACKAGES:
        tracked = subprocess.run(["git", "ls-files", package], cwd=ROOT, capture_output=True, text=True).stdout.split()
        assert not {path for path in tracked if not (toolkit / path).is_file()}, package
    assert (wheel / "enablekit" / "py.typed").is_file()


def test_its_modules_import_each_other_by_their_new_names(wheel):
    ours = [path for path in wheel.rglob("*.py") if OWN_IMPORT.search(path.read_text())]
    assert not ours
    assert (
        "from enablekit._toolkit.traces" in (wheel / "enablekit" / "_toolkit" / "capture" / "recorder.py").read_text()
    )


def test_it_is_imported_beside_modules_of_the_same_names(wheel):
    program = "import enablekit, traces; print(enablekit.__file__); assert traces.MINE; enablekit.UserError"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "tests" / "hostile",
        env={"PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(wheel)), done.stderr


def test_imports_are_moved_and_nothing_else():
    text = "from traces.x import y\n    from verify import z\nfrom tracesque import a\nimport torch\n# from traces\n"
    assert moved(text, "p.") == text.replace("from traces.x", "from p.traces.x").replace("from verify", "from p.verify")
