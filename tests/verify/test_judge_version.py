"""What a verdict is keyed by follows the files that decide it, and no others."""

import shutil
from pathlib import Path

import pytest

from verify.judging.sources import deciding, digest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copied(tmp_path):
    for package in ("verify", "traces"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "comparison/compare.py", "comparison/tolerance.py", "operators.py", "judging/run.py", "cases/case.py",
        "cases/references.py", "child/guards.py", "child/serve.py", "child/zygote.py", "contract/derive.py",
        "sandbox/confine.py", "sandbox/wire.py",
    ],
)  # fmt: skip
def test_an_edit_of_a_deciding_file_changes_it(copied, name):
    before = digest(copied)
    path = copied / "verify" / name
    path.write_text(path.read_text() + "\n# edited\n")
    assert digest(copied) != before


@pytest.mark.parametrize(
    "name",
    [
        "verify/debugging/debugger.py", "verify/lint/host.py", "verify/comparison/mutants.py", "verify/cases/opinfo.py",
        "verify/judging/smoke.py", "traces/writer.py", "traces/diff.py",
    ],
)  # fmt: skip
def test_an_edit_of_any_other_does_not(copied, name):
    before = digest(copied)
    path = copied / name
    path.write_text(path.read_text() + "\n# edited\n")
    assert digest(copied) == before


def test_a_new_file_in_a_new_room_is_seen(copied):
    before = digest(copied)
    new = copied / "verify" / "opinions" / "taste.py"
    new.parent.mkdir()
    new.write_text("SOUR = 1\n")
    assert digest(copied) == before, "nobody imports it"
    run = copied / "verify" / "judging" / "run.py"
    run.write_text(run.read_text() + "\n\ndef late():\n    from verify.opinions import (\n        taste,\n    )\n")
    imported = digest(copied)
    assert new in deciding(copied)
    new.write_text("SOUR = 2\n")
    assert digest(copied) not in (before, imported)


def test_a_file_that_moves_is_no_longer_the_same(copied):
    before = digest(copied)
    old = copied / "verify" / "judging" / "problems.py"
    run = copied / "verify" / "judging" / "run.py"
    old.rename(copied / "verify" / "problems.py")
    run.write_text(run.read_text().replace("verify.judging.problems", "verify.problems"))
    assert digest(copied) != before
