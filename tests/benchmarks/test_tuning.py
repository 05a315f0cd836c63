"""The campaign of searches for speed, as far as it needs no GPU: its trace, and the page made of what it left."""

import json
from collections import Counter

import pytest
from timings import H100, measurement

from benchmarks.tuning import _searches, record, write
from enable.tune.timing import keep
from enable.tune.tuning import Tuned
from generate.kernel_search.measurement import gain
from traces import jsonable
from traces.store import Trace


class Text:
    sha256 = "0" * 64


@pytest.mark.sweep
def test_every_search_has_shapes_of_its_own(tmp_path):
    record(tmp_path)
    trace = Trace.open(tmp_path / "traces" / "tuning.trace")
    shapes = Counter(signature.overload for signature in trace.signatures.values())
    searches = _searches()
    assert len(searches) >= 8 and len(_searches(["aten::cat"])) == 1
    assert all(shapes[overload] >= 5 for overload, _ in searches), shapes
    branches = Trace.open(tmp_path / "traces" / "tuning-branches.trace")
    asked = {signature.overload for signature in branches.signatures.values()} & {overload for overload, _ in searches}
    assert len(asked) == 6, asked


def test_the_page_is_made_of_what_was_left(tmp_path):
    out, page = tmp_path / "out", tmp_path / "page.md"
    (out / "tune").mkdir(parents=True)
    measured = measurement(["a", "b"], [10.0, 8.0])
    keep(out / "tune" / "aten.sum.times.jsonl", [Text()], 31, measured)
    found = Tuned("aten::sum", "ACCEPTED", "", "k.py", gain(measured, 1), 10.0, 8.0, 2, {"calls": 2}, "", 2)
    (out / "aten.sum.json").write_text(json.dumps(jsonable(found)))
    none = Tuned("aten::nll_loss_backward", "NOT_FASTER", "", candidates=10, shapes=4)
    (out / "aten.nll_loss_backward.json").write_text(json.dumps(jsonable(none)))
    (out / "aten.cat.json").write_text("")  # of a search that was ended
    page.write_text("# Head\n\n<!-- figures -->\nold\n<!-- end of figures -->\n\nTail.\n")
    write(out, page)
    text = page.read_text()
    assert "| aten::sum | tree | 2 | 2 | 2 | 10.0 | 8.0 | 1.250 |" in text and "accepted |" in text
    assert "| aten::nll_loss_backward | settings | 4 | 10 | - | - | - | 1.000 | 0.0% | 1.000 | not faster |" in text
    assert f"One {H100.name}, with 0 other processes on it while times were taken" in text
    assert "old" not in text and text.endswith("Tail.\n")
    write(out, page)
    assert page.read_text() == text
    with pytest.raises(ValueError):
        page.write_text("no marks")
        write(out, page)
