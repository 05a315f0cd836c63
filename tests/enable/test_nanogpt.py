"""Every compute overload of nanoGPT's training step is covered, whichever optimizer trains it."""

import pytest

from capture.session import capture_model
from capture.targets import load_target
from enable.cover.session import Session
from enable.workspace import Workspace

SMALL = {"n_layer": "1", "n_embd": "32", "n_head": "2", "block_size": "16"}
FORMS = {  # an overload that only this optimizer calls
    "adamw": "aten::addcdiv_",
    "adamw-foreach": "aten::_foreach_addcdiv_.ScalarList",
    "adamw-fused": "aten::_fused_adamw_",
    "sgd": "aten::add_.Tensor",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with Session(Workspace(tmp_path_factory.mktemp("nanogpt")), None, "sim") as session:
        yield session


@pytest.mark.parametrize("optimizer", FORMS)
def test_every_overload_is_covered(session, optimizer):
    path = session.workspace.trace_path(optimizer)
    capture_model(load_target("nanogpt", SMALL, batch=2, optimizer=optimizer), path, steps=2, progress=False)
    coverage = session.coverage(optimizer)
    assert not coverage.failing()
    assert FORMS[optimizer] in {row.overload for row in coverage.compute}
    assert all(row.cases for row in coverage.compute)
    assert coverage.as_json()["overloads"]["percent"] == 100
