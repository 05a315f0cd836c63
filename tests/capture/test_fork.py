"""A child that is forked inside a recording: it records nothing, hangs on nothing, and the trace stays whole."""

import os
import signal
import time
import traceback

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import traces.writer
from capture import Recorder
from traces import Trace, TraceWriter, UserError, verify

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def in_child(work):
    """Run `work` in a forked child that then ends as an interpreter does; its exit status, or -9 if it hung."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - the child must never return into the test run
            traceback.print_exc()
        finally:
            os._exit(status)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def files(path):
    return {p.name: p.read_bytes() for p in path.iterdir()}


def leave(recorder):
    recorder.__exit__(None, None, None)


def test_workers_of_a_data_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(traces.writer, "SHARD_BYTES", 32)  # so that each worker would write shards of its own
    data = TensorDataset(torch.arange(96.0).view(24, 4))
    with Recorder(tmp_path / "a.trace", per_signature=50) as recorder:
        for (batch,) in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork"):
            batch.exp().sum()
    trace = Trace.open(tmp_path / "a.trace")
    ids = [r.id for r in trace.calls()]
    assert ids == list(range(trace.manifest["stored"]))
    assert not recorder.errors
    report = verify(trace)
    assert report.passed, report.mismatches


def test_a_child_that_records_on_and_leaves_the_recorder(tmp_path, monkeypatch):
    monkeypatch.setattr(traces.writer, "SHARD_BYTES", 64)
    path = tmp_path / "a.trace"
    with Recorder(path, per_signature=50) as recorder:
        torch.ones(3).exp()

        def work():
            for i in range(20):
                torch.full((40,), float(i)).exp()
            with recorder.pause(), recorder.phase("loading"):
                torch.ones(7)
            leave(recorder)
            torch.ones(5)

        before = files(path)
        assert in_child(work) == 0
        assert files(path) == before
        torch.ones(3).log()
    trace = Trace.open(path)
    assert {s.overload for s in trace.signatures.values()} == {"aten::ones", "aten::exp", "aten::log"}
    assert verify(trace).passed


def test_a_lock_that_another_thread_holds_at_the_fork(tmp_path):
    with Recorder(tmp_path / "a.trace") as recorder:
        with recorder._lock:  # as a thread does that is storing a call

            def work():
                torch.ones(3).exp()
                leave(recorder)

            assert in_child(work) == 0
        torch.ones(3)
    assert Trace.open(tmp_path / "a.trace").manifest["calls"] == 1


def test_a_child_cannot_replace_the_trace_of_its_parent(tmp_path):
    path = tmp_path / "a.trace"
    with Recorder(path, force=True) as recorder:

        def work():
            leave(recorder)
            with pytest.raises(UserError, match="records once"):
                recorder.__enter__()

        assert in_child(work) == 0
        torch.ones(3)
    assert Trace.open(path).manifest["calls"] == 1


def test_a_recorder_made_before_the_fork_and_entered_in_the_child(tmp_path):
    recorder = Recorder(tmp_path / "a.trace")

    def work():
        with recorder:
            torch.ones(3).exp()

    assert in_child(work) == 0
    assert Trace.open(tmp_path / "a.trace").manifest["calls"] == 2


def test_a_recorder_records_once(tmp_path):
    with Recorder(tmp_path / "a.trace", force=True) as recorder:
        torch.ones(3)
    with pytest.raises(UserError, match="records once"):
        recorder.__enter__()
    assert Trace.open(tmp_path / "a.trace").manifest["calls"] == 1


@pytest.mark.parametrize("end", ["flush", "close", "abandon"])
def test_a_writer_writes_only_in_its_own_process(tmp_path, end):
    writer = TraceWriter(tmp_path / "a.trace")
    writer.add_blob(b"1234")
    before = files(tmp_path / "a.trace")
    assert in_child(getattr(writer, end)) == 0
    assert files(tmp_path / "a.trace") == before
    writer.close()
    assert Trace.open(tmp_path / "a.trace").complete
