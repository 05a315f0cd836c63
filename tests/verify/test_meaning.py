"""The key of a kernel: equal for texts that compile to the same programs, and for no others."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from corpus import replaced

from generate import BLOCKS
from generate.kernel_library import KERNELS
from verify.contract.kernel_file import KernelFile
from verify.linking import link
from verify.meaning import meaning_of

KERNEL = '''"""aten::exp(Tensor self) -> Tensor"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)
LIMIT = tl.constexpr(80.0)


@triton.jit
def capped(x, limit: tl.constexpr = 88.0):
    """Cap."""
    return tl.minimum(x, limit)


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    values = tl.load(x_ptr + places, mask=inside)
    total = values * 0.0
    for step in range(2):
        shifted = values + step
        total += shifted
    if n > 100:
        first = total + 1.0
        second = total * 2.0
    else:
        first = total
        second = total
    tl.store(out_ptr + places, tl.exp(capped(first - second, LIMIT)), mask=inside)


def wrapper(self):
    result = torch.empty_like(self)
    count = self.numel()
    kernel[(triton.cdiv(count, 128),)](self, result, count, BLOCK=128)
    return result
'''


def key(text):
    return KernelFile.parse(text, Path("exp.py"), (BLOCKS,)).key


def changed(*texts):
    """Return the kernel with each second text for the one before it."""
    return replaced(KERNEL, *zip(texts[::2], texts[1::2], strict=True))


SAME = {
    "a comment": ("    inside =", "    # where\n    inside ="),
    "a docstring": ('    """Cap."""\n', ""),
    "another docstring": ('Tensor"""', 'Tensor\n\nMore.\n"""'),
    "spaces": ("places < n", "(places\n        < n)"),
    "pass": ("    total = values * 0.0\n", "    total = values * 0.0\n    pass\n"),
    "a function that nothing uses": ("def wrapper", "def spare(x):\n    return x\n\n\ndef wrapper"),
    "an import that nothing uses": ("import torch\n", "import math\n\nimport torch\n"),
    "a constant that nothing uses": ("OVERLOADS", "SPARE = 3\nOVERLOADS"),
    "the order of definitions": (
        "LIMIT = tl.constexpr(80.0)\n",
        "",
        "def wr",
        "LIMIT = tl.constexpr(80.0)\n\n\ndef wr",
    ),
    "names of local variables": ("shifted", "moved", "inside", "mask_of_all", "step", "i", "values", "v"),
    "names of a wrapper's variables": ("result", "answer", "count", "elements"),
}
OTHER = {
    "a constant": ("values * 0.0", "values * 0.5"),
    "an integer for a float": ("total + 1.0", "total + 1"),
    "a module's constant": ("constexpr(80.0)", "constexpr(81.0)"),
    "a default": ("= 88.0", "= 87.0"),
    "a decorator": ("@triton.jit\ndef capped", "@triton.jit(noinline=True)\ndef capped"),
    "an annotation": ("limit: tl.constexpr", "limit"),
    "the order of statements": ("first = total\n        second = total", "second = total\n        first = total"),
    "two variables for one another": ("first - second", "second - first"),
    "a variable of a branch": ("first", "a_first"),
    "a parameter": ("x_ptr", "in_ptr"),
    "what a name means": ("import triton.language as tl", "import triton.language.extra as tl"),
    "the dtypes": ('("float32",)', '("float32", "float64")'),
    "a statement that runs at import": ("def wrapper", "torch.manual_seed(0)\n\n\ndef wrapper"),
    "a call at import whose result nothing uses": ("def wrapper", "SEED = torch.manual_seed(0)\n\n\ndef wrapper"),
    "the name of another variable": ("places < n", "places < BLOCK"),
}


@pytest.mark.parametrize("name", [*SAME, *OTHER])
def test_the_key_changes_with_what_a_program_means(name):
    text = changed(*(SAME | OTHER)[name])
    assert text != KERNEL and (key(text) == key(KERNEL)) == (name in SAME)


COMPILE = """
import importlib.util, re, sys
import triton
from triton.backends.compiler import GPUTarget

for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(module.kernel, signature, {(3,): 128})
    text = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
    lines = [re.sub(r" ?loc\\(.*\\)", "", line) for line in text.split("\\n") if not line.startswith("#loc")]
    names = {}  # of values, which are those of the variables
    print(repr(re.sub(r"%\\w+", lambda value: names.setdefault(value[0], f"%{len(names)}"), "\\n".join(lines))))
"""


def compiled(texts, directory):
    """TTIR of each text's kernel for an H100, without places and names, from a process in which Triton compiles."""
    paths = [directory / f"{number}.py" for number, _ in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", COMPILE, *map(str, paths)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()


def test_equal_keys_are_of_programs_that_compile_to_the_same(tmp_path):
    differing = ["a constant", "a module's constant", "two variables for one another"]
    texts = [KERNEL, *(changed(*c) for c in SAME.values()), *(changed(*OTHER[name]) for name in differing)]
    right, *found = compiled(texts, tmp_path)
    assert "tt.store" in right
    same, other = found[: len(SAME)], found[len(SAME) :]
    assert all(text == right for text in same)
    assert all(text != right for text in other)


@pytest.mark.parametrize(
    "lines",
    [
        ["SIZE = 1", "SIZE = 2"],
        ["SIZE = 1", "SIZE = max(2, 3)"],
        ["SIZE = max(2, 3)", "LEAST = min(2, 3)"],
        ["def size():\n    return 1\n", "def size():\n    return 2\n"],
        ["def size():\n    return 1\n", "size = 2"],
    ],
)
def test_the_order_of_what_runs_at_import_is_kept(lines):
    head = 'OVERLOADS = ("aten::exp",)\nDTYPES = ("float32",)'
    body = "def wrapper(self):\n    return SIZE, LEAST, size\n"
    keys = {key(f"{head}\n{a}\n{b}\n{body}") for a, b in (lines, lines[::-1])}
    assert len(keys) == 2


SCOPES = """
def function(x, y=1):
    a = [b for b in x]
    c = lambda d: d + a
    e = 1
    def inner(e):
        return e + a
    return a, c, e, inner
"""


@pytest.mark.parametrize(
    "old, new, same",
    [
        ("a", "z", True),
        ("c =", "z =", False),  # and is read as another
        ("e", "b", False),  # bound in two scopes
        ("b", "z", False),  # of a comprehension
        ("d", "z", False),  # of a lambda
        ("x", "z", False),  # a parameter
    ],
)
def test_only_names_that_mean_one_thing_are_made_canonical(old, new, same):
    changed = re.sub(rf"\b{re.escape(old)}(?=\W|$)", new, SCOPES) if "=" not in old else SCOPES.replace(old, new)
    assert changed != SCOPES
    assert (meaning_of(ast.parse(changed)) == meaning_of(ast.parse(SCOPES))) == same


@pytest.mark.parametrize("head", ["def f(x={}):", "@{}\ndef f():", "def f() -> {}:", "def f(x: {}):"])
def test_what_a_function_reads_outside_of_its_body_keeps_its_name(head):
    """Where a local variable has the same name."""
    text = head + "\n    {} = 1\n"
    assert meaning_of(ast.parse(text.format("a", "a"))) != meaning_of(ast.parse(text.format("b", "b")))
    assert meaning_of(ast.parse(text.format("a", "b"))) == meaning_of(ast.parse(text.format("a", "c")))


@pytest.mark.parametrize("call", ["locals()", "vars()", "eval('a')", "exec('')"])
def test_names_stay_where_a_function_looks_at_them(call):
    texts = [f"def function():\n    {name} = 1\n    return {call}\n" for name in "ab"]
    assert meaning_of(ast.parse(texts[0])) != meaning_of(ast.parse(texts[1]))


def undocumented(text):
    """The text without any docstring or comment, with other positions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def test_no_docstring_or_comment_of_the_library_changes_a_key(tmp_path):
    blocks = tmp_path / "blocks"
    blocks.mkdir()
    for path in BLOCKS.glob("*.py"):
        (blocks / path.name).write_text("# edited\n\n" + undocumented(path.read_text()))
    files = sorted(KERNELS.rglob("*.py"))[::5]
    for path in files:
        ours = KernelFile.read(path, (BLOCKS,))
        theirs = KernelFile.parse(undocumented(path.read_text()), path, (blocks,))
        assert theirs.source != ours.source and theirs.key == ours.key, path


def test_a_block_that_is_used_is_part_of_the_key(tmp_path):
    text = (KERNELS / "pointwise" / "exp.py").read_text()
    ours = key(text)
    edited = (BLOCKS / "elementwise.py").read_text()
    assert "def elementwise(" in edited
    (tmp_path / "elementwise.py").write_text(re.sub(r"\n    return ", "\n    0\n    return ", edited))
    assert KernelFile.parse(text, Path("exp.py"), (tmp_path, BLOCKS)).key != ours
    (tmp_path / "elementwise.py").write_text(edited + "\n\ndef spare():\n    return 1\n")
    assert KernelFile.parse(text, Path("exp.py"), (tmp_path, BLOCKS)).key == ours


def test_a_linked_text_has_a_key_of_its_own():
    text = (KERNELS / "pointwise" / "exp.py").read_text()
    assert key(link(text, (BLOCKS,))) != key(link(text, (BLOCKS,)).replace("tl.exp", "tl.exp2"))
