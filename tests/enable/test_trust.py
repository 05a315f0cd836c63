"""What lies in a workspace is believed only if this user's commands put it there."""

import json
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
import torch

from capture import Recorder
from enable.cli import run
from enable.library import select
from enable.trust import outside_dialect
from enable.workspace import Workspace
from generate.kernel_library import KERNELS, Library
from traces import UserError
from verify import platforms, signing
from verify.cases.opinfo import kept_cases
from verify.lint.profile import DEFAULT

EXP = (KERNELS / "pointwise" / "exp.py").read_text()
SLY = EXP.replace("OVERLOADS =", 'open("written", "w").close()\nOVERLOADS =', 1)
PLACE = Path(".enable/kernels/pointwise/exp.py")


@pytest.fixture
def enable(tmp_path, monkeypatch, capfd):
    """Runs a command in a directory with a library of one kernel and a trace; (exit status, stdout, stderr)."""
    base = tmp_path / "library" / "pointwise"
    base.mkdir(parents=True)
    shutil.copy(KERNELS / "pointwise" / "exp.py", base)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENABLE_LIBRARY", "library")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    with Recorder(".enable/traces/small.trace"), torch.no_grad():
        torch.randn(5).exp()

    def call(*words):
        capfd.readouterr()
        status = run(list(words))
        return (status, *capfd.readouterr())

    return call


def put(source):
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    PLACE.write_text(source)


def row(enable):
    (found,) = [r for r in json.loads(enable("coverage", "small", "--json")[1])["rows"] if r["kernel"]]
    return found


def served(unverified=False):
    place = Workspace(Path(".enable"))
    try:
        return sorted(select(None, unverified, library=place.library(Path("library")), workspace=place.root).entries)
    except UserError:
        return []


def test_a_file_that_lint_refuses_never_runs_and_counts_nowhere(enable):
    put(SLY)
    found = row(enable)
    assert found["outcome"] == "CHEAT" and "dialect of sim: module-level code: " in found["detail"]
    assert enable("verify", str(PLACE))[1].startswith("exp.py: CHEAT [lint]")
    assert served() == [] and served(unverified=True) == []
    status, _, err = enable("export", "out")
    assert status == 2 and "no kernel is verified" in err
    for flags in ((), ("--unverified",)):
        status, _, err = enable("export", "out", "--op", "exp", *flags)
        assert status == 2 and "CHEAT [lint]" in err and "--unverified" not in err and err.count("\n") == 1
    assert not Path("written").exists()


def test_of_a_copied_library_what_differs_from_the_packaged_kernels_is_linted(tmp_path):
    copied = tmp_path / "pointwise" / "exp.py"
    copied.parent.mkdir()
    dialects = {}
    for text in (EXP, f"{EXP}\n", SLY):
        copied.write_text(text)
        dialects[text] = Library(tmp_path).match("aten::exp").job.dialect
    assert dialects == {EXP: DEFAULT, f"{EXP}\n": "", SLY: ""}
    assert "open" in outside_dialect(Library(tmp_path).match("aten::exp"), platforms.load("sim"))


def test_a_file_put_there_by_hand_counts_once_it_was_tried_in_full(enable):
    put(f"{EXP}# mine\n")
    PLACE.write_text(PLACE.read_text().replace("tl.exp(", "1.0 * tl.exp("))
    found = row(enable)
    assert found["outcome"] == "SKIPPED" and "not tried in full by this judge; try it: enable verify" in found["detail"]
    assert served() == []
    status, _, err = enable("export", "out", "--op", "exp")
    assert status == 2 and "not tried in full" in err and "--unverified" in err and err.count("\n") == 1
    command = found["detail"].partition("try it: ")[2].split()
    assert enable(*command[1:], "--limit", "8")[0] == 0
    assert row(enable)["outcome"] == "SKIPPED"  # a trial with something left out
    assert enable(*command[1:])[0] == 0
    assert row(enable)["outcome"] == "PASS" and "aten::exp" in served()
    status, out, _ = enable("export", "out")
    assert status == 0 and out.splitlines()[0].endswith("verified on platform sim alone: no GPU ran them")
    assert "sim alone: no GPU ran them" in Path("out/README.md").read_text()


def test_a_version_counts_on_the_platform_on_which_it_was_accepted(enable):
    Path("easy.yaml").write_text("base: sim\nlint: {base: triton, remove: {dtypes: [float64]}}\n")
    Path("better.py").write_text(EXP.replace("tl.exp(", "1.0 * tl.exp("))
    status, out, _ = enable("library", "add", "better.py", "--platform", "./easy.yaml")
    assert status == 0 and "enable library history aten::exp" in out and "--platform" not in out
    found = row(enable)
    assert found["outcome"] == "SKIPPED" and found["detail"].endswith("enable verify .enable/kernels/pointwise/exp.py")
    assert served() == []


def test_a_version_of_somebody_elses_is_not_accepted_here(enable, tmp_path, monkeypatch):
    Path("better.py").write_text(EXP.replace("tl.exp(", "1.0 * tl.exp("))
    assert enable("library", "add", "better.py")[0] == 0
    assert row(enable)["outcome"] == "PASS" and "aten::exp" in served()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "theirs"))
    status, out, err = enable("coverage", "small", "--json")
    (found,) = [r for r in json.loads(out)["rows"] if r["kernel"]]
    assert found["outcome"] == "SKIPPED" and "not tried in full" in found["detail"]
    assert err.count("did not sign") == 1 and "enable verify --all" in err
    assert served() == []


def test_a_verdict_that_was_changed_is_not_believed_and_judged_anew(enable):
    put(EXP.replace("tl.exp(", "2.0 + tl.exp("))
    assert row(enable)["outcome"] == "WRONG"
    with closing(sqlite3.connect(".enable/verdicts.sqlite")) as db, db:
        assert db.execute("UPDATE verdicts SET outcome = 'PASS'").rowcount
    status, out, err = enable("coverage", "small", "--json")
    (found,) = [r for r in json.loads(out)["rows"] if r["kernel"]]
    assert found["outcome"] == "WRONG" and "did not sign" in err
    assert "did not sign" not in enable("coverage", "small", "--json")[2]


def test_samples_that_were_cut_are_made_anew(tmp_path, capsys):
    def cases():
        return [case.id for case in kept_cases(tmp_path, ["aten::mm"], ("float32",))]

    whole = cases()
    (path,) = (tmp_path / "samples").glob("*.json")
    for _ in range(2):
        path.write_text(json.dumps(json.loads(path.read_text())[:1]))
        assert cases() == whole and len(whole) > 1
    assert capsys.readouterr().err.count("made anew") == 1, "it is said once"
    assert cases() == whole and capsys.readouterr().err == ""


def test_binaries_lie_where_only_this_user_and_place_would_look(enable, tmp_path, monkeypatch):
    monkeypatch.delenv("ENABLE_CACHE", raising=False)
    here, copy = Workspace(tmp_path / "here"), Workspace(tmp_path / "copy")
    places = {here.compiled, here.native, copy.compiled, copy.native}
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "theirs"))
    assert len(places | {here.compiled, here.native}) == 6


def test_a_copied_workspace_says_once_that_it_compiles_again(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ENABLE_CACHE", raising=False)
    here = Workspace(tmp_path / "here")
    here.compiled.mkdir(parents=True)
    shutil.copytree(tmp_path / "here", tmp_path / "copy")
    assert here.compiled.is_dir() and capsys.readouterr().err == ""
    copied = Workspace(tmp_path / "copy")
    assert copied.compiled == copied.compiled != here.compiled
    assert capsys.readouterr().err.count("kernels are compiled again, because this directory was copied or moved") == 1


def test_the_key_is_the_users_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    signature = signing.sign("a", "b")
    path = tmp_path / "enablekit" / "key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(path.read_bytes()) == 32
    assert signing.is_signed(signature, "a", "b") and not signing.is_signed(signature, "ab", "")
    assert not signing.is_signed(None, "a", "b") and not signing.is_signed("\xe9", "a", "b")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    assert not signing.is_signed(signature, "a", "b")
    (tmp_path / "broken" / "enablekit").mkdir(parents=True)
    (tmp_path / "broken" / "enablekit" / "key").write_bytes(b"short")
    (tmp_path / "broken" / "enablekit" / "key").chmod(0o600)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "broken"))
    with pytest.raises(UserError, match="not a key of 32 bytes; remove the file"):
        signing.sign("a")
    (tmp_path / "file").write_text("")
    path.chmod(0o644)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    signing._key.cache_clear()
    with pytest.raises(UserError, match=f"others can read this key; keep it to yourself: chmod 600 {path}"):
        signing.sign("a")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert len(signing.sign("a")) == 32 and "cannot be kept" in capsys.readouterr().err
