"""Verdicts on disk, frames on the wire, platforms, kernel files."""

import socket
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from capture import Recorder
from traces import Trace, TraceError, UserError
from traces.values import pack
from verify import platforms
from verify.cases.case import case_of
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.judging.conditions import Conditions
from verify.judging.standings import ENOUGH, marked
from verify.judging.verdicts import Identity, VerdictStore
from verify.outcome import Outcome, Verdict
from verify.sandbox import wire

SIM = platforms.load("sim")
FULL = Conditions()


def identity(kernel="a" * 64, case="c"):
    return Identity((kernel,), "aten::mm", case, SIM)


def test_verdicts_outlive_the_process_and_are_keyed_by_everything(tmp_path):
    store = VerdictStore(tmp_path / "v.sqlite")
    store.put(identity(), Verdict("c", Outcome.WRONG, "detail", "report"), 0.5)
    store.close()
    store = VerdictStore(tmp_path / "v.sqlite")
    assert store.get(identity()) == Verdict("c", Outcome.WRONG, "detail", "report")
    assert store.get(identity(kernel="b" * 64)) is None
    assert store.get(identity(case="d")) is None
    store.close()


def test_dtypes_are_verified_where_every_verdict_passes(tmp_path):
    store = VerdictStore(tmp_path / "v.sqlite")

    def put(dtypes, outcome, platform=SIM, conditions=FULL, kernel="a"):
        case = f"{dtypes} {outcome}"
        kept = Identity(("aten::mm", kernel), "aten::mm", case, platform, conditions)
        store.put(kept, Verdict(case, outcome, dtypes=dtypes), 0.1)

    put("float32", Outcome.PASS)
    put("bfloat16,float32", Outcome.PASS)
    put("bfloat16", Outcome.WRONG)
    put("float16", Outcome.TIMEOUT)
    put("", Outcome.PASS)
    put("float64", Outcome.PASS, conditions=replace(FULL, off=frozenset({"compare"})))
    put("complex64", Outcome.PASS, platform=replace(SIM, sha256="0"))
    put("float16", Outcome.PASS, kernel="b")
    found = store.standings(SIM)
    store.close()
    assert {which: standing.verified for which, standing in found.items()} == {
        (("aten::mm", "a"), "aten::mm"): frozenset({"float32", ""}),
        (("aten::mm", "b"), "aten::mm"): frozenset({"float16"}),
    }


def test_the_strongest_verdict_is_told_whoever_asks(tmp_path):
    store = VerdictStore(tmp_path / "v.sqlite")
    again, without = replace(FULL, repeated=True), replace(FULL, off=frozenset({"repeat"}))
    bare, other = replace(FULL, strict=False), replace(FULL, sandbox="none")

    def told(conditions, case="c"):
        found = store.get(replace(identity(case=case), conditions=conditions))
        return found and found.outcome

    def put(conditions, outcome, case="c"):
        store.put(replace(identity(case=case), conditions=conditions), Verdict(case, outcome), 0.1)

    put(FULL, Outcome.PASS)
    assert [told(c) for c in (FULL, again, without, bare, other)] == [Outcome.PASS, None, Outcome.PASS, None, None]
    put(again, Outcome.WRONG)
    assert [told(c) for c in (FULL, again, without, bare, other)] == [
        *(Outcome.WRONG, Outcome.WRONG, Outcome.PASS),
        *(None, Outcome.WRONG),
    ]
    (standing,) = store.standings(SIM).values()
    assert not standing.passed and not standing.verified and standing.failure == "WRONG in 1 of 1 judged cases: "
    put(again, Outcome.PASS, "d")
    put(bare, Outcome.WRONG, "d")
    put(without, Outcome.WRONG, "d")
    assert [told(c, "d") for c in (FULL, again, without, bare)] == [*[Outcome.PASS] * 2, *[Outcome.WRONG] * 2]
    store.close()


def test_cases_that_differ_in_contents_alone_are_one_that_speaks_for_a_kernel(tmp_path):
    store = VerdictStore(tmp_path / "v.sqlite")
    for case, signature in zip("abc", ("2x2", "2x2", "3x3"), strict=True):
        store.put(identity(case=case), Verdict(case, Outcome.PASS, signature=signature), 0.1)
    (standing,) = store.standings(SIM).values()
    store.close()
    assert (len(standing.passed), standing.independent) == (3, 2)
    assert marked(Outcome.PASS, 2) == "PASS, 2 cases" and marked(Outcome.PASS, 1) == "PASS, 1 case"
    assert marked(Outcome.PASS, ENOUGH) == "PASS" and marked(Outcome.WRONG, 1) == "WRONG"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_earlier_store_is_emptied(tmp_path, version):
    """Its verdicts are of judges that are no more, and lack columns."""
    with sqlite3.connect(tmp_path / "v.sqlite") as old:
        old.execute("CREATE TABLE verdicts (key TEXT PRIMARY KEY, outcome TEXT)")
        old.execute("INSERT INTO verdicts VALUES ('k', 'PASS')")
        old.execute(f"PRAGMA user_version={version}")
    old.close()
    store = VerdictStore(tmp_path / "v.sqlite")
    store.put(identity(), Verdict("c", Outcome.PASS, dtypes="float16"), 0.5)
    assert store.get(identity()) == Verdict("c", Outcome.PASS, dtypes="float16")
    store.close()


def test_a_newer_store_is_refused(tmp_path):
    sqlite3.connect(tmp_path / "v.sqlite").execute("PRAGMA user_version=9").connection.close()
    with pytest.raises(UserError, match="format 9"):
        VerdictStore(tmp_path / "v.sqlite")


def pair():
    ours, theirs = socket.socketpair()
    return ours, theirs


def test_frames_round_trip():
    ours, theirs = pair()
    with ours, theirs:
        import torch

        packed = pack({"x": torch.arange(3), "y": 2.5})
        wire.send_packed(ours, {"status": "ok"}, packed)
        header, buffers = wire.receive(theirs, time.monotonic() + 5)
        again = wire.packed_of(header, buffers, "frame")
        assert again.header() == packed.header() and bytes(again.data[0]) == bytes(packed.data[0])


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff\xff\xff\xff",
        b"\x05\x00\x00\x00hello",
        b"\x02\x00\x00\x00[]",
        b"\x02\x00\x00\x00{}",
        b'\x0f\x00\x00\x00{"buffers":[-1]}'[:4] + b'{"buffers":[-1]',
        b'\x1e\x00\x00\x00{"buffers":[99999999999999999]}'[:34],
    ],
)
def test_frames_that_are_none_are_refused(raw):
    ours, theirs = pair()
    with ours, theirs:
        ours.sendall(raw)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(wire.WireError):
            wire.receive(theirs, time.monotonic() + 2)


def test_a_silent_peer_runs_into_the_deadline():
    ours, theirs = pair()
    with ours, theirs, pytest.raises(wire.WireError) as caught:
        wire.receive(theirs, time.monotonic() + 0.05)
    assert caught.value.timeout


@pytest.mark.parametrize("content", [None, 3, [], {"groups": 5}, {"tree": {}, "tensors": [{}], "groups": []}])
def test_answers_that_hold_no_call_are_refused(content):
    with pytest.raises((TraceError, TypeError)):
        wire.packed_of({"packed": content}, [], "answer")


def test_unknown_platform_lists_the_choices():
    with pytest.raises(UserError, match="sim"):
        platforms.load("triton")
    assert SIM.targets[0].arch == 90


BROKEN = {
    "syntax": ("def wrapper(:", "line 1"),
    "no wrapper": ('OVERLOADS = ("aten::mm",)\nDTYPES = ("float32",)\n', "no function named wrapper"),
    "computed overloads": ("OVERLOADS = tuple(x for x in y)\n", "OVERLOADS must be a literal tuple"),
    "a string": ('OVERLOADS = "aten::mm"\n', "OVERLOADS must be a literal tuple"),
    "null byte": ("x = 1\0", "not valid Python"),
    "nesting": ("x = " + "(" * 5000, "not valid Python"),
}


@pytest.mark.parametrize("source, message", BROKEN.values(), ids=BROKEN.keys())
def test_broken_kernel_files(source, message):
    with pytest.raises(KernelFileError, match=message) as caught:
        KernelFile.parse(source, Path("generate/kernels/x/y.py"))
    assert "\n" not in str(caught.value) and "x/y.py" in str(caught.value)


def test_where_a_storage_begins_is_no_part_of_a_case(tmp_path):
    """What is recorded again lies elsewhere; a place inside 64 bytes is a view's own, which kernels may see."""
    memory, cases = torch.ones(64), []
    for first in (0, 16, 4):
        with Recorder(tmp_path / f"{first}.trace"):
            memory[first : first + 8].exp()
        trace = Trace.open(tmp_path / f"{first}.trace")
        cases += [case_of(trace, record) for record in trace.calls() if record.overload == "aten::exp"]
    one, again, other = cases
    assert one.id == again.id != other.id
    assert {case.load().groups[0].align for case in (one, again)} == {0, 64}  # the traces keep it
