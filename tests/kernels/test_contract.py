"""Every file of the kernel library keeps the contract of a kernel file, as far as its text alone can show."""

from __future__ import annotations

import ast
from keyword import iskeyword
from pathlib import Path

import pytest
import torch

from generate import BLOCKS
from generate.kernel_search.space import Space
from verify import platforms
from verify.contract.kernel_file import KernelFile
from verify.lint import lint, load_profile
from verify.lint.schema import parse_schema

LIBRARY = Path(__file__).parents[2] / "generate" / "kernels"
FILES = sorted(LIBRARY.glob("*/*.py"))
GROUPS = sorted({path.parent.name for path in FILES})
EACH_GROUP = pytest.mark.parametrize("paths", [sorted((LIBRARY / g).glob("*.py")) for g in GROUPS], ids=GROUPS)


def torch_schema(overload: str) -> str:
    """The schema of an overload as torch prints it."""
    name, _, variant = overload.removeprefix("aten::").partition(".")
    return str(getattr(getattr(torch.ops.aten, name), variant or "default")._schema)


def stated_lines(path: Path) -> list[str]:
    """The schemas at the head of the docstring, one a line; a continued line is indented."""
    docstring = ast.get_docstring(ast.parse(path.read_text()), clean=False)
    assert docstring is not None
    return docstring.partition("\n\n")[0].rstrip().replace("\n    ", " ").split("\n")


def test_library_is_found() -> None:
    assert FILES
    assert {path.parent.parent for path in FILES} == {LIBRARY}


@EACH_GROUP
def test_docstring_begins_with_the_schemas(paths: list[Path]) -> None:
    for path in paths:
        kernel = KernelFile.read(path, (BLOCKS,))
        assert stated_lines(path) == [torch_schema(overload) for overload in kernel.overloads], path


@EACH_GROUP
def test_constants_and_functions(paths: list[Path]) -> None:
    for path in paths:
        tree = ast.parse(path.read_text())
        constants = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Tuple)
        }
        assert constants.keys() - {"LAYOUTS", "SPACE", "TUNED"} == {"OVERLOADS", "DTYPES"}, path
        if "SPACE" in constants:
            space = Space.of(path.read_text(), path.name)
            assert space.default in space.settings, path
        assert all(isinstance(value, tuple) and value for value in constants.values()), path
        assert list(constants["DTYPES"]) == sorted(set(constants["DTYPES"])), path
        assert all(isinstance(getattr(torch, dtype), torch.dtype) for dtype in constants["DTYPES"]), path
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert functions.count("wrapper") == 1, path
        assert functions[-1] == "wrapper", path


@EACH_GROUP
def test_wrapper_names_its_parameters_as_the_schema_does(paths: list[Path]) -> None:
    """Compared with the longest schema: `arange(end)` is called with its end in the place of `start`."""
    for path in paths:
        tree = ast.parse(path.read_text())
        wrapper = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "wrapper")
        schemas = [schema for schema in map(parse_schema, stated_lines(path)) if schema is not None]
        positional = [[p.name for p in schema.parameters if not p.keyword_only] for schema in schemas]
        longest = max(positional, key=len)
        named = zip([a.arg for a in wrapper.args.args], longest, strict=False)
        assert len(wrapper.args.args) >= len(longest), path
        assert all(name == schemas_name for name, schemas_name in named if not iskeyword(schemas_name)), path


def test_no_overload_is_served_twice() -> None:
    served = [overload for path in FILES for overload in KernelFile.read(path, (BLOCKS,)).overloads]
    assert len(served) == len(set(served))


@EACH_GROUP
def test_lint_has_nothing_against_the_blocks_of_cuda(paths: list[Path]) -> None:
    """The library's own it sees wherever a kernel is judged."""
    rules = load_profile(platforms.load("cuda").lint).with_blocks(BLOCKS)
    for path in paths:
        kernel = KernelFile.read(path, rules.blocks)
        if kernel.source != KernelFile.read(path, (BLOCKS,)).source:
            assert lint(kernel.source, rules, written=kernel.written) == [], path
