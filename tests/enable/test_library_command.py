"""`enable library` as a user types it."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from capture import Recorder
from enable.cli import run
from enable.cover.session import Session
from enable.reference import operators
from enable.workspace import Workspace
from generate.kernel_library import KERNELS
from generate.versions import Versions

EXP = (KERNELS / "pointwise" / "exp.py").read_text()
WRONG = EXP.replace("tl.exp(", "2.0 + tl.exp(")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A directory with a library of one kernel, and a workspace with two versions over it, the second wrong."""
    base = tmp_path / "library" / "pointwise"
    base.mkdir(parents=True)
    shutil.copy(KERNELS / "pointwise" / "exp.py", base)
    versions = Versions(tmp_path / ".enable" / "kernels")
    versions.put("pointwise", "exp", f"{EXP}# one\n", {"model": "m", "traces": ["small"], "platform": "sim"})
    versions.put("pointwise", "exp", WRONG, {})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENABLE_LIBRARY", "library")
    return tmp_path


@pytest.fixture
def enable(home, capsys):
    """Run the program; (exit status, stdout, stderr)."""

    def call(*arguments):
        status = run(list(arguments))
        out, err = capsys.readouterr()
        return status, out, err

    return call


def test_list(enable):
    status, out, _ = enable("library", "list")
    assert status == 0 and "pointwise/exp" in out and "kernels in force: 1, of this workspace: 1" in out
    (row,) = json.loads(enable("library", "list", "--json")[1])["kernels"]
    assert (row["kernel"], row["overloads"], row["version"], row["accepted"]) == (
        "pointwise/exp",
        ["aten::exp"],
        2,
        True,
    )


def test_history(enable):
    status, out, _ = enable("library", "history", "aten::exp")
    lines = out.splitlines()
    columns = ["version", "standing", "action", "when", "sha256", "few cases", "by", "traces"]
    assert status == 0 and re.split(r"  +", lines[0].strip()) == columns
    assert lines[1].split()[:3] == ["1", "replaced", "accepted"] and "small" in lines[1]
    assert lines[-1].startswith("pointwise/exp: version 2 is in force, sha256 ")
    found = json.loads(enable("library", "history", "aten::exp_", "--json")[1])  # derived from exp
    assert found["in_force"] == 2 and [v["number"] for v in found["versions"]] == [1, 2]
    assert found["versions"][0]["provenance"] == {"model": "m", "traces": ["small"], "platform": "sim"}


def test_history_names_the_verdict_on_a_file_put_there_by_hand(enable, home):
    path = home / ".enable" / "kernels" / "pointwise" / "exp.py"

    def last_line(source):
        path.write_text(source)
        return enable("library", "history", "aten::exp")[1].splitlines()[-1]

    unjudged = last_line(EXP + "# by hand\n")
    assert "put there by hand is in force" in unjudged
    assert unjudged.endswith("it has no verdict on sim; judge it: enable verify aten::exp")
    assert not (home / ".enable" / "verdicts.sqlite").exists()
    assert enable("verify", "aten::exp", "--limit", "1")[0] == 0
    assert re.search("on sim it passed [0-9]+ cases$", last_line(EXP + "# by hand\n"))
    assert "it has no verdict on sim" in last_line(EXP.replace("tl.exp(", "3.0 + tl.exp("))
    assert enable("verify", "aten::exp", "--limit", "1")[0] == 1
    assert re.search("on sim it is WRONG in [0-9]+ of", enable("library", "history", "aten::exp")[1])


def digests(enable, *words):
    """The whole sha256 in the JSON, and the abbreviated one in the table."""
    found = json.loads(enable("library", *words, "--json")[1])
    whole = (found["kernels"][0] if "kernels" in found else found)["sha256"]
    return whole, whole[:12] in enable("library", *words)[1]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_list_and_history_show_the_sha256_of_the_file(enable, home, end):
    path = home / ".enable" / "kernels" / "pointwise" / "exp.py"
    path.write_bytes(path.read_text().replace("\n", end).encode())
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digests(enable, "list") == digests(enable, "history", "aten::exp") == (expected, True)
    path.unlink()  # the base library's kernel is in force
    base = hashlib.sha256((home / "library" / "pointwise" / "exp.py").read_bytes()).hexdigest()
    assert digests(enable, "list") == digests(enable, "history", "aten::exp") == (base, True)


def test_show(enable):
    assert enable("library", "show", "aten::exp") == (0, WRONG, "")
    assert enable("library", "show", "aten::exp", "--version", "1") == (0, f"{EXP}# one\n", "")
    assert json.loads(enable("library", "show", "aten::exp", "--json")[1])["source"] == WRONG


def test_rollback(enable, home):
    assert "version 3: the source of version 1 is in force" in enable("library", "rollback", "aten::exp")[1]
    assert enable("library", "show", "aten::exp")[1] == f"{EXP}# one\n"
    done = json.loads(enable("library", "rollback", "aten::exp", "--to", "0", "--json")[1])
    assert (done["number"], done["standing"], done["back_to"]) == (4, "in force", 0)
    assert enable("library", "show", "aten::exp")[1] == EXP
    assert "base library" in enable("library", "history", "aten::exp")[1].splitlines()[4]
    assert enable("library", "rollback", "aten::exp", "--to", "2")[0] == 0
    assert enable("library", "show", "aten::exp")[1] == WRONG


@pytest.mark.parametrize(
    "words, told",
    [
        (["rollback", "aten::exp", "--to", "7"], "has no version 7; it has 0 (the base library's kernel), 1, 2"),
        (["rollback", "aten::exp", "--to", "2"], "version 2 of pointwise/exp is in force already"),
        (["show", "aten::exp", "--version", "9"], "has no version 9"),
        (["history", "aten::_dirichlet_grad"], "no kernel serves aten::_dirichlet_grad or did"),
        (["show", "aten::nothing"], "aten::nothing"),
        (["show", "expp"], "has no such operator"),
    ],
)
def test_the_users_mistakes_are_one_line_and_exit_2(enable, words, told):
    status, out, err = enable("library", *words)
    assert (status, out) == (2, "") and err.startswith("enable: ") and err.count("\n") == 1, err
    assert told in err


def test_a_workspace_without_versions(enable, home):
    shutil.rmtree(home / ".enable")
    assert "none was accepted here" in enable("library", "history", "aten::exp")[1]
    status, _, err = enable("library", "rollback", "aten::exp")
    assert status == 2 and "no version is earlier" in err
    assert enable("library", "show", "aten::exp")[1] == EXP


def test_roll_back_takes_effect_for_coverage_at_once(enable, home):
    model = torch.nn.Sequential(torch.nn.Identity())
    with Recorder(home / ".enable" / "traces" / "small.trace"):
        torch.exp(model(torch.linspace(-1, 1, 30)))

    def outcome():
        with Session(Workspace(home / ".enable"), home / "library", "sim") as session:
            return {row.overload: str(row.outcome) for row in session.coverage("small").rows}["aten::exp"]

    assert outcome() == "WRONG"
    assert enable("library", "rollback", "aten::exp")[0] == 0
    assert outcome() == "PASS"


def test_where_a_kernel_comes_from_is_told_alike_everywhere(enable, home):
    with Recorder("small.trace"), torch.no_grad():
        torch.randn(5).exp()

    def told():
        (row,) = [r for r in json.loads(enable("coverage", "small.trace", "--json")[1])["rows"] if r["kernel"]]
        (listed,) = json.loads(enable("library", "list", "--json")[1])["kernels"]
        return {
            row["origin"],
            listed["origin"],
            json.loads(enable("library", "history", "aten::exp", "--json")[1])["origin"],
        }

    assert told() == {"version 2"}
    assert "pointwise/exp.py (version 2)" in enable("coverage", "small.trace")[1]
    (home / ".enable/kernels/pointwise/exp.py").write_text(f"{EXP}# mine\n")
    assert told() == {"by hand"}
    assert "a file put there by hand is in force, sha256 " in enable("library", "history", "aten::exp")[1]
    enable("library", "rollback", "aten::exp", "--to", "0")
    assert told() == {"base"}


def test_a_rollback_that_leaves_no_kernel_says_so(enable, home):
    Versions(home / ".enable" / "kernels").put("pointwise", "neg", EXP.replace("aten::exp", "aten::neg"), {})
    status, out, _ = enable("library", "rollback", "aten::neg")
    assert status == 0 and "no kernel is left; the base library has none" in out
    assert "no kernel is in force; the base library has none" in enable("library", "history", "aten::neg")[1]


def test_a_file_in_no_group_is_not_ignored(enable, home):
    (home / ".enable/kernels/silu.py").write_text(EXP.replace("aten::exp", "aten::silu"))
    status, _, err = enable("library", "list")
    assert status == 2 and err.count("\n") == 1
    assert "lies in no group" in err and "mv .enable/kernels/silu.py silu.py && enable library add silu.py" in err


def test_a_kernel_of_ones_own_is_judged_and_added(enable, home, tmp_path):
    (home / "mine.py").write_text(WRONG)
    status, out, _ = enable("library", "add", "mine.py")
    assert status == 1 and "pointwise/exp: refused; what was in force still is" in out
    assert (
        re.search(r"that were made fail: \w+ WRONG.*: return: .* wrong\n", out)
        and "next   enable verify mine.py" in out
    )
    (home / "mine.py").write_text(f"{EXP}# mine\n")
    status, out, err = enable("library", "add", "mine.py", "--json")
    found = json.loads(out)
    assert status == 0 and found["accepted"] and found["version"] == 3, err
    assert found["cases"]["made"] > 10
    (row,) = json.loads(enable("library", "list", "--json")[1])["kernels"]
    assert row["origin"] == "version 3, by hand"
    assert enable("library", "show", "aten::exp")[1] == f"{EXP}# mine\n"


@pytest.mark.parametrize(
    "text, told",
    [
        (None, "cannot be read"),
        ("\udcff", "cannot be read (not a text in UTF-8)"),
        ("x = 1", "mine.py"),
        (EXP.replace("tl.exp(", "tl.expp("), "lint: [name] tl.expp"),
    ],
)
def test_what_cannot_be_added(enable, home, text, told):
    if text is not None:
        (home / "mine.py").write_text(text, errors="surrogateescape")
    status, out, err = enable("library", "add", "mine.py")
    assert status in (1, 2) and told in out + err
    assert enable("library", "show", "aten::exp")[1] == WRONG


def test_results_are_put_down_and_seen_to_be_stale(enable, home):
    status, out, err = enable(
        "verify", "aten::exp", "--library", "library", "--workspace", "other", "--cases", "opinfo"
    )
    assert status == 0, err
    words = ("--workspace", "other", "library")
    assert enable(*words, "record", "results.json")[0] == 0
    (row,) = json.loads(enable("--workspace", "none", "library", "table", "--json", "--results", "results.json")[1])[
        "operators"
    ]
    assert row["sim"]["passed"] == row["sim"]["judged"] > 5 and not row["sim"]["stale"]
    assert len(row["dtypes"].split()) >= row["sim"]["variants"] > 1
    (home / "library" / "pointwise" / "exp.py").write_text(WRONG)
    told = enable("--workspace", "none", "library", "table", "--results", "results.json")[1]
    assert "of an earlier kernel" in told
    (home / "results.json").write_text("[]")
    status, _, err = enable("--workspace", "none", "library", "table", "--results", "results.json")
    assert status == 2 and "results.json" in err


def test_the_page_of_operators_has_no_row_that_was_judged_nowhere(monkeypatch):
    monkeypatch.delenv("ENABLE_LIBRARY", raising=False)
    root = Path(__file__).parents[2]
    page = operators(root / "docs" / "results" / "library.json")
    assert page == (root / "docs" / "operators.md").read_text(), "the library or its results changed: make docs"
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| aten::")]
    assert len(rows) >= 100 and not [row[0] for row in rows if set(row[2:-1]) == {"-"}]
