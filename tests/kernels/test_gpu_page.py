"""docs/results/gpu.json, the page of the GPU gate, beside the library: kernels that changed since are listed there.

See docs/results/gpu.md; tests/test_gpu_gate.py has the tests of the gate itself.
"""

import shutil

import pytest

from generate.kernel_library import KERNELS, Library
from tests.gpu_gate import page as pages
from traces import UserError
from verify import platforms
from verify.lint import load_profile

BLOCKS = load_profile(platforms.load("cuda").lint).blocks


def test_every_kernel_was_judged_on_a_gpu_as_it_is_or_is_listed_as_unjudged():
    complaint = pages.complaint(pages.keys_of(Library(KERNELS, blocks=BLOCKS)), pages.read(pages.PAGE, "cuda"))
    assert not complaint, complaint


def test_the_readme_names_the_last_green_gate():
    assert pages.line_in(pages.README.read_text()) == pages.line(pages.read(pages.PAGE)), "run: make docs"


@pytest.fixture
def scratch(tmp_path):
    """A library of two kernel files and the blocks of cuda, all of which may be edited: the keys that it has now."""
    kernels, blocks = tmp_path / "kernels", tmp_path / "blocks"
    for name in ("pointwise/exp.py", "matmul/mm.py"):
        (kernels / name).parent.mkdir(parents=True)
        shutil.copy(KERNELS / name, kernels / name)
    shutil.copytree(BLOCKS[0], blocks)
    return lambda: pages.keys_of(Library(kernels, blocks=(blocks,)))


def edit(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


@pytest.fixture
def page(scratch):
    """A green page of that library."""
    kernels = {name: {"key": key, "outcome": "PASS"} for name, key in scratch().items()}
    run = {"commit": "1a2b3c", "date": "2026-01-02", "device": "H200", "pytest": {"passed": 9, "failed": 0}}
    return pages.concluded(scratch(), {**pages.empty("cuda"), **run, "kernels": kernels}, needs_pytest=True)


@pytest.mark.parametrize(
    ("file", "before", "after", "named"),
    [
        ("kernels/pointwise/exp.py", "to_float=True", "to_float=False", ["pointwise/exp"]),
        ("kernels/pointwise/exp.py", '"uint8")', '"uint8", "uint16")', ["pointwise/exp"]),
        ("blocks/matmul.py", "SHARED_BYTES = 230000", "SHARED_BYTES = 220000", ["matmul/mm"]),
        ("kernels/pointwise/exp.py", "import triton\n", "import triton  # a comment\n", []),
        ("blocks/matmul.py", "SHARED_BYTES = 230000", "SHARED_BYTES = 230_000", []),
    ],
)
def test_a_kernel_that_changed_is_named_until_it_is_deferred(file, before, after, named, scratch, page, tmp_path):
    assert pages.complaint(scratch(), page) == ""
    edit(tmp_path / file, before, after)
    complaint = pages.complaint(scratch(), page)
    assert pages.changed(scratch(), page) == named and bool(complaint) == bool(named)
    for text in (*named, *(["make gpu", "python -m tests.gpu_gate --defer"] if named else [])):
        assert text in complaint
    deferred = pages.deferred(scratch(), page, "later")
    assert deferred["unjudged"] == dict.fromkeys(named, "later") and pages.complaint(scratch(), deferred) == ""


def test_a_kernel_that_is_missing_is_named_and_no_more_than_eight(scratch, page):
    keys = {f"group/{n:02}": "key" for n in range(20)}
    complaint = pages.complaint(keys, page)
    assert "group/07 and 12 more; " in complaint and "group/08" not in complaint
    assert pages.complaint({**scratch(), "new/one": "key"}, page).startswith(
        "not judged on a GPU as they are: new/one;"
    )


def test_a_page_is_read_as_it_was_written_with_a_line_for_each_kernel(page, tmp_path):
    pages.write(tmp_path / "gpu.json", page)
    assert pages.read(tmp_path / "gpu.json") == page
    lines = (tmp_path / "gpu.json").read_text().splitlines()
    assert [line.split('"')[1] for line in lines if '"PASS"' in line] == ["matmul/mm", "pointwise/exp"]


@pytest.mark.parametrize("text", ["[]", "{", '{"platform": "sim"}'])
def test_a_file_that_is_no_page_of_the_platform_is_refused(text, tmp_path):
    (tmp_path / "gpu.json").write_text(text)
    with pytest.raises(UserError, match="--out"):
        pages.read(tmp_path / "gpu.json")


def test_the_line_of_the_last_green_gate_stays_after_one_that_is_not(scratch, page):
    said = "Last GPU gate: 2026-01-02, commit 1a2b3c, 2 kernels on H200."
    assert pages.line(pages.empty("cuda")) == "Last GPU gate: none yet."
    assert pages.line(page) == said and pages.state(page) == "green"
    rows = {"pointwise/exp": {"key": scratch()["pointwise/exp"], "outcome": "WRONG"}}
    for change, state in (
        ({"kernels": page["kernels"] | rows}, "failed"),
        ({"pytest": {"passed": 8, "failed": 1}}, "failed"),
        ({"pytest": {"passed": 0, "failed": 0}}, "failed"),
        ({"pytest": None}, "incomplete"),
        ({"kernels": rows}, "incomplete"),
    ):
        later = pages.concluded(scratch(), {**page, "commit": "other", **change}, needs_pytest=True)
        assert pages.line(later) == said and pages.state(later) == state


def test_results_of_another_machine_are_replaced_by_a_whole_run_alone(scratch, page):
    here = {"commit": "1a2b3c", "date": "2026-01-03", "device": "H200", "torch": "", "triton": ""}
    assert pages.begun(page, here, whole=False) == {**page, **here}
    assert pages.begun(page, {**here, "commit": "other"}, whole=False)["pytest"] is None
    with pytest.raises(UserError, match="the page is of H200, .* this is A100"):
        pages.begun(page, {**here, "device": "A100"}, whole=False)
    assert pages.begun(page, {**here, "device": "A100"}, whole=True)["kernels"] == {}
