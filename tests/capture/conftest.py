import pytest
import torch

from capture import Recorder
from traces import Trace


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small matrices gain nothing from threads, and lose much when other tests run beside them."""
    torch.set_num_threads(1)


@pytest.fixture
def record(tmp_path):
    """Record what a function does; returns the trace."""

    def run(work, **options):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.trace"
        with Recorder(path, **options) as recorder:
            work(recorder) if work.__code__.co_argcount else work()
        return Trace.open(path)

    return run
