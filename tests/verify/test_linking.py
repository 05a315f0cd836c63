"""Kernel files and the blocks that they import, linked into one text."""

import ast
import itertools
import shutil
from pathlib import Path

import pytest
import torch
from shared import packaged

from generate import BLOCKS
from generate.kernel_library import KERNELS
from traces import UserError
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.linking import LinkError, blocks_in, link, told_line, written
from verify.lint import lint, load_profile
from verify.outcome import Outcome

EXP = (KERNELS / "pointwise" / "exp.py").read_text()
HEAD = '"""aten::neg(Tensor self) -> Tensor"""\n\nimport triton\n'
FILES = sorted([*KERNELS.glob("*/*.py"), *BLOCKS.glob("*.py")])


def test_a_file_without_blocks_is_its_own_text():
    text = (Path(__file__).parents[2] / "generate" / "examples" / "argmax.py").read_text()
    assert link(text) is text


def test_the_authors_lines_stay_where_they_are():
    linked = link(EXP, (BLOCKS,))
    mine, all_lines = EXP.split("\n"), linked.split("\n")
    changed = [(a, b) for a, b in zip(mine, all_lines, strict=False) if a != b]
    assert changed == [(line, f"# {line}") for line in mine if line.startswith("from blocks")]
    assert link(linked) == linked


def test_every_line_of_a_block_is_told_where_it_was_written():
    linked = link(EXP, (BLOCKS,))
    lines, seen = linked.split("\n"), 0
    for number, line in enumerate(lines, 1):
        place, there = written(linked, number)
        if place and line and not line.startswith("# blocks/"):
            assert (BLOCKS.parent / place).read_text().split("\n")[there - 1] == line
            seen += 1
    assert seen > 50
    last = next(n for n, line in enumerate(lines, 1) if line.startswith("def elementwise("))
    place = (BLOCKS / "elementwise.py").read_text().split("\n").index(lines[last - 1]) + 1
    assert told_line(linked, last) == f"line {place} of blocks/elementwise.py"
    assert told_line(linked, 3) == "line 3"


def test_what_a_linked_text_uses_is_there():
    tree = ast.parse(link(EXP, (BLOCKS,)))
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets}
    blocks = blocks_in((BLOCKS,)).blocks
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert {name for name in used if name in blocks and blocks[name].public} <= defined


@pytest.mark.parametrize(
    ("imported", "told"),
    [
        (
            "from blocks.elementwise import elementwide",
            "line 4: blocks.elementwise has no elementwide; choose from .*elementwise",
        ),
        ("from blocks.nothing import x", r"line 4: no module blocks.nothing; choose from .*blocks\.arithmetic"),
        ("from blocks import elementwise", "line 4: no module blocks; choose from"),
        ("import blocks.elementwise", "line 4: import blocks.elementwise; write `from blocks.MODULE import NAME"),
        (
            "from blocks.elementwise import elementwise as e",
            "line 4: elementwise as e; use blocks under their own names",
        ),
        ("from blocks.elementwise import _launch", "has no _launch"),
        ("from blocks.elementwise import *", r"has no \*"),
    ],
)
def test_an_import_that_cannot_be_followed_is_told(imported, told):
    with pytest.raises(LinkError, match=told):
        link(f"{HEAD}{imported}\n", (BLOCKS,))
    (violation,) = lint(f"{HEAD}{imported}\n", load_profile().with_blocks(BLOCKS))
    assert (violation.rule, violation.line) == ("blocks", 4)


def test_a_constant_comes_before_what_reads_it_at_import(tmp_path):
    """The modules' order alone would link `first`, then `last`."""
    (tmp_path / "first.py").write_text("PARTS = 6 * UNITS\n\n\ndef parts(n=PARTS):\n    return n\n")
    (tmp_path / "last.py").write_text("UNITS = 132\n")
    linked = link("from blocks.first import parts\n", (tmp_path,))
    scope = {}
    exec(linked, scope)
    assert scope["parts"]() == 792
    assert [line for line in linked.split("\n") if line.startswith("# blocks/")] == [
        *("# blocks/last.py:1", "# blocks/first.py:1", "# blocks/first.py:4")
    ]


@pytest.mark.parametrize("reads", ["LARGEST = INT32_MAX - 1", "def size(n=INT32_MAX):\n    return n"])
def test_a_kernel_file_cannot_read_a_block_at_import(reads):
    with pytest.raises(LinkError, match="line 3: INT32_MAX is read before it is defined, as blocks follow; read it in"):
        link(f"from blocks.limits import INT32_MAX\n\n{reads}\n", (BLOCKS,))


def test_a_block_that_moved_is_found_by_its_name(tmp_path):
    (tmp_path / "old.py").write_text("def other():\n    return 1\n")
    (tmp_path / "new.py").write_text("def one():\n    return _two()\n\n\ndef _two():\n    return 2\n")
    assert "# blocks/new.py:1\ndef one():" in link("from blocks.old import one\n", (tmp_path,))
    for private in ("_two", "three"):
        with pytest.raises(LinkError, match=f"blocks.old has no {private}; choose from other"):
            link(f"from blocks.old import {private}\n", (tmp_path,))


def test_a_name_of_ones_own_that_is_a_blocks_too():
    text = f"{HEAD}from blocks.elementwise import elementwise\n\n\ndef strided(i):\n    return i\n"
    with pytest.raises(LinkError, match="line 7: strided is also the name of a block"):
        link(text, (BLOCKS,))


def test_a_block_of_a_platform_takes_the_place_of_ours(tmp_path):
    (tmp_path / "types.py").write_text("def float_dtype(dtype):\n    return dtype  # of a platform\n")
    theirs, ours = (KernelFile.parse(EXP, Path("exp.py"), (*own, BLOCKS)) for own in ((tmp_path,), ()))
    assert "# of a platform" in theirs.source and "# of a platform" not in ours.source
    assert theirs.key != ours.key and theirs.written == ours.written == EXP


def test_what_a_platforms_blocks_import_stands_where_these_are():
    blocks = load_profile("triton-nvidia").with_blocks(BLOCKS).blocks
    line = "import triton.experimental.gluon as gluon\n"
    product, exp = (KernelFile.read(KERNELS / name, blocks).source for name in ("matmul/mm.py", "pointwise/exp.py"))
    assert product.count(line) == 1 and line not in exp
    assert line not in KernelFile.read(KERNELS / "matmul/mm.py", (BLOCKS,)).source


def test_mtia_has_its_own_types_and_speaks_the_library():
    profile = load_profile("mtia-like").with_blocks(BLOCKS)
    ours, theirs = (KernelFile.parse(EXP, Path("exp.py"), blocks).source for blocks in ((BLOCKS,), profile.blocks))
    assert "tl.float64" in ours and "tl.float64" not in theirs
    assert [v.rule for v in lint(ours, profile) if v.rule != "dtypes"] and not [
        v for v in lint(EXP, profile) if v.rule != "dtypes"
    ]


def test_numbers_reach_kernels_that_are_linked_with_the_blocks_of_mtia(judge):
    path = KERNELS / "pointwise" / "add.py"
    kernel = KernelFile.read(path, load_profile("mtia-like").with_blocks(BLOCKS).blocks)
    dtypes = torch.int64, torch.int32, torch.uint8, torch.float32
    tensors = [torch.arange(7).to(dtype) for dtype in dtypes]
    cases = tuple(case_of_values("aten::add.Scalar", self=t, other=n, alpha=2) for t in tensors for n in (3, -2))
    found = judge.judge([Job(Plan("aten::add.Scalar", "aten::add.Scalar"), kernel, cases)])
    assert [v.outcome for v in found.values()] == [Outcome.PASS] * len(cases), found


def test_a_directory_with_one_name_twice(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("def one():\n    return 1\n")
    with pytest.raises(UserError, match="b.py: one is already in blocks/a.py:1; rename one of them"):
        blocks_in((tmp_path,))


def test_a_platform_takes_the_place_of_blocks_of_the_same_module_alone(tmp_path):
    """What another module calls by that name would be linked instead."""
    (tmp_path / "matmul.py").write_text("def tile_place():\n    pass\n")
    with pytest.raises(UserError, match="is a name of blocks/window_tiles.py; write it in window_tiles.py, or"):
        blocks_in((tmp_path, BLOCKS))
    (tmp_path / "matmul.py").rename(tmp_path / "window_tiles.py")
    assert "pass" in blocks_in((tmp_path, BLOCKS)).blocks["tile_place"].text


def bodies(path):
    """The functions of a file without their names and docstrings, those of one plain line left out."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            text = "\n".join(map(ast.unparse, body))
            if len(text) > 60 and node.name != "wrapper":
                yield node.name, text


def repeated(files):
    """What stands twice: bodies of functions, and names of helpers."""
    found = [(text, name, path.name) for path in files for name, text in bodies(path)]
    found.sort()
    twice = [(a[1:], b[1:]) for a, b in itertools.pairwise(found) if a[0] == b[0]]
    names = sorted((name, text, path) for text, name, path in found)
    return twice + [((a[0], a[2]), (b[0], b[2])) for a, b in itertools.pairwise(names) if a[0] == b[0] and a[1] != b[1]]


def test_no_function_stands_twice_in_the_library():
    assert repeated(FILES) == []


def test_a_function_that_stands_twice_is_seen(tmp_path):
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    shutil.copy(BLOCKS / "offsets.py", first)
    second.write_text(first.read_text().replace("def merge(", "def merged("))
    told = repeated([first, second])
    assert (("merge", "first.py"), ("merged", "second.py")) in told
    second.write_text(
        "def merge(shape, strides):\n    return [size * stride for size, stride in zip(shape, strides, strict=True)]\n"
    )
    assert [{a, b} for a, b in repeated([first, second])] == [{("merge", "first.py"), ("merge", "second.py")}]


def test_every_kernel_file_is_of_the_library():
    assert len(list(packaged())) == len(list(KERNELS.glob("*/*.py")))
