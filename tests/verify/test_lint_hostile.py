"""Whatever the text, lint ends soon with violations or without, and never raises."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from shared import sampled

from traces import UserError
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.judging.candidate import read_candidate
from verify.lint import Profile, lint, lint_text, load_profile, render

PROFILES = [load_profile("triton-cuda"), load_profile("triton"), load_profile("mtia-like")]
ANY = PROFILES[0]
SECONDS = 30.0  # of CPU; what is linear takes less than one on a slow machine, and what is not takes minutes
KERNEL = "@triton.jit\ndef kernel(x_ptr, o_ptr, n, B: tl.constexpr = 8):\n    tl.store(o_ptr, tl.load(x_ptr))\n\n\n"
WRAPPER = "def wrapper(input):\n    return input\n"


def host(body: str, before: str = "") -> str:
    return f"{before}\n{KERNEL}def wrapper(input):\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def device(body: str) -> str:
    return KERNEL.rstrip() + "\n" + "".join(f"    {line}\n" for line in body.split("\n")) + WRAPPER


def nest(opening: str, closing: str, times: int, inside: str = "input") -> str:
    return opening * times + inside + closing * times


def loops(times: int, header: str = "for a@ in range(1):") -> str:
    lines = [" " * i + header.replace("@", str(i)) for i in range(times)]
    return "\n".join([*lines, " " * times + "pass"])


def several(line: str, times: int, between: str = "\n") -> str:
    return between.join(line.replace("@", str(i)) for i in range(times))


EXPRESSIONS = {
    "parentheses": nest("(", ")", 1000),
    "brackets": nest("[", "]", 180),
    "subscripts": nest("input[", "]", 38, "0"),
    "calls": nest("f(", ")", 100),
    "launches": nest("kernel[(1,)](", ")", 60),
    "call chain": "input" + "()" * 100,
    "attributes": "input" + ".T" * 30_000,
    "lambdas": nest("lambda: (", ")", 100),
    "comprehensions": nest("[x for x in ", "]", 35),
    "dict comprehensions": nest("{0: ", " for x in (1, 2)}", 35),
    "ternaries": nest("(1 if ", " else 2)", 100),
    "ternary chain": "1 if input else " * 10_000 + "2",
    "f-strings": "f'" + "{input}" * 10_000 + "'",
    "nested f-strings": nest("f'{", "}'", 4),
    "f-string without a way to write it": "f'''{" + '"\\"" + ' * 0 + "input['''\n'''] + 1}'''",
    "unary": "-" * 5000 + "1",
    "not": "not " * 5000 + "input",
    "await": "await " * 5000 + "input",
    "or": "input or " * 20_000 + "1",
    "nested or": nest("(0 or (1 and ", "))", 40),
    "comparison": "input < " * 20_000 + "1",
    "sum": "input + " * 20_000 + "1",
    "huge integer": "input + " + "9" * 4000,
    "huge hexadecimal": "input + 0x" + "f" * 50_000,
    "huge float": "input + " + "9" * 400 + ".0e999j",
    "huge string": "'" + "x" * 90_000 + "' + input",
    "surrogates": r"input.get('\ud800\udfff') + '\ud800'",
    "walrus": nest("(a := ", ")", 60),
    "starred": "f(" + "*input, " * 10_000 + ")",
    "keywords": "f(" + several("a@=input", 8000, ", ") + ")",
    "unpacked": "f(" + "**input, " * 10_000 + ")",
    "unclosed": "(" * 150 + "{" * 20 + "[lambda: f(",
    "strange names": "ℌ + ﬁ + µ + input.ª",
}

PROGRAMS = {
    "empty": "",
    "null": "\0",
    "null inside": WRAPPER + "\0" + KERNEL,
    "surrogate": KERNEL + "# \udcff\n" + WRAPPER,
    "newlines": "\n" * 90_000,
    "one megabyte": "x" * 1_000_000,
    "one megabyte of statements": "x = 1;" * 170_000,
    "one megabyte of comment": "#" + " " * 1_000_000 + KERNEL,
    "one line of spaces after a fence": "```" + " " * 90_000 + "x\n",
    "fences": "```\n" * 25_000,
    "backticks": "`" * 90_000,
    "long runs in the docstring": '"""a::b(x' + " " * 80_000 + "!) -> x" + '"""\n' + KERNEL + WRAPPER,
    "parentheses in the docstring": '"""a::b(' + "(" * 80_000 + ") -> x" + '"""\n' + KERNEL + WRAPPER,
    "schemas": '"""'
    + several("a::b@(Tensor x) -> x", 2500)
    + '"""\n'
    + KERNEL
    + WRAPPER.replace("input", several("a@", 4000, ", "), 1),
    "decorators": several("@d@", 10_000) + "\n" + WRAPPER,
    "autotuned": several("@triton.autotune()", 5000) + "\n@triton.jit\ndef k(): pass\n" + WRAPPER,
    "jitted": several("@triton.jit", 8000) + "\ndef k(): pass\n" + WRAPPER,
    "functions": several("def f@(x): return x\n", 4000) + WRAPPER,
    "kernels": several("@triton.jit\ndef f@(x): return x\n", 2500) + WRAPPER,
    "wrappers": WRAPPER * 2000,
    "classes": nest("class A:\n", "", 1, " x = 1\n") * 3000 + WRAPPER,
    "tables": several("T@ = {}", 9000) + "\n" + KERNEL + WRAPPER,
    "tables of tables": host("return T0", several("T@ = {'a': {}}", 4000)),
    "aliases of a table": host(
        "return a4000['x']", "a0 = {'x': {}}\n" + "\n".join(f"a{i + 1} = a{i}" for i in range(4000))
    ),
    "aliases of a module": host("\n".join(f"a{i + 1} = a{i}.x" for i in range(5000)), "import torch as a0"),
    "assignments": host("\n".join(f"a{i} = input" for i in range(7000))),
    "chain of targets": host("a = " * 9000 + "f(" + "input, " * 5000 + ")"),
    "unknown names": host("\n".join(f"a{i} = b{i}" for i in range(5000))),
    "unknown long names": host("\n".join(f"a{i} = {'ab' * 500}{i}" for i in range(80))),
    "branches": host("\n".join(f"a{i} = 1\nif a{i}: b = 1\nelse: b = input" for i in range(2500))),
    "elif": host("if input: pass\n" + "elif input: pass\n" * 3000 + "return input"),
    "loops": host(loops(40) + "\nreturn input"),
    "loops within Python's limit": host(loops(20) + "\nreturn input"),
    "loops that learn": host(loops(20).replace("pass", "a = b; b = c; c = d; d = input") + "\nreturn input"),
    "whiles": host(loops(40, "while input.dim() > @:") + "\nreturn input"),
    "withs": host(loops(40, "with input:") + "\nreturn input"),
    "loops of targets": host(loops(15).replace("pass", f"for {several('b@', 6000, ', ')} in input: pass")),
    "loops in a kernel": device(loops(20)),
    "loops of loads in a kernel": device(loops(20).replace("pass", "x = tl.load(x_ptr) + tl.exp(x)")),
    "too many loops in a kernel": device(loops(40)),
    "a googol": device(f"for k in tl.static_range(0, {10**70}, 3):\n    n += k"),
    "many googols": device(f"for k in tl.static_range(0, {10**5000 % 10**4000 or 7}{'0' * 3000}):\n    n += k"),
    "a step of nothing": device("for k in tl.static_range(1, 2, 0):\n    n += k"),
    "parameters of a kernel": "@triton.jit\ndef k("
    + several("p@: tl.constexpr", 3000, ", ")
    + "):\n    "
    + "p1(p2);" * 5000
    + "\n"
    + WRAPPER,
    "quoted annotation": WRAPPER.replace("(input", '(input: "' + "int | " * 6000 + 'int"'),
    "annotation": WRAPPER.replace("(input", "(input: " + "int | " * 6000 + "int"),
    "quoted quotes": WRAPPER.replace("(input", "(input: " + "'" + '"' + r"\'" * 30 + '"' + "'"),
    "declared": "OVERLOADS = {[]: 1}\nDTYPES = {{}}\n" + KERNEL + WRAPPER,
    "declared arithmetic": f"OVERLOADS = {9 * 10**400} + 1j\nDTYPES = -'a'\n" + KERNEL + WRAPPER,
    "declared surrogates": 'OVERLOADS = ("\\ud800",)\nDTYPES = ("\\udfff", "\\0")\n' + KERNEL + WRAPPER,
    "declared deep": "DTYPES = "
    + nest("(", ",)", 70, "'a'")
    + "\nOVERLOADS = "
    + "1+" * 5000
    + "1j\n"
    + KERNEL
    + WRAPPER,
    "helpers in a row": KERNEL
    + "\n".join(f"def h{i}(x): return h{i + 1}(x)" for i in range(450))
    + "\ndef h450(x): return x\n"
    + host("return h0(input)"),
    "helper calls": host(
        "\n".join(["h(" + "input, " * 30 + ")"] * 900), "def h(" + several("a@", 4000, ", ") + "): pass\n"
    ),
    "helper of a class": host(
        several("h(1, input)\nh(input, 2)", 200), "def h(a, b):\n class A:\n" + several("  x = a.shape", 5000) + "\n"
    ),
    "unpacked doubles": host(
        "kernel[(1,)](**a0)", "\n".join(f"a{i} = {{**a{i + 1}, **a{i + 1}}}" for i in range(60)) + "\na60 = {'x': 1}"
    ),
    "unpacked row": host(
        "kernel[(1,)](**a0)", "\n".join(f"a{i} = {{**a{i + 1}}}" for i in range(3000)) + "\na3000 = {'x': 1}"
    ),
    "unpacked choices": host(
        "kernel[(1,)](**a0)", "\n".join(f"a{i} = a{i + 1} if 1 else a{i + 1}" for i in range(60)) + "\na60 = {0xfff: 1}"
    ),
    "launches": host(
        "\n".join(["kernel[(1,)](input)"] * 4000), "@triton.jit\ndef k(" + several("p@", 5000, ", ") + "): pass"
    ),
    "imports": "import math\n" * 8000 + WRAPPER,
    "imports from": "from torch import empty\n" * 4000 + WRAPPER,
    "deep indentation": several("if 1:", 1).join(" " * i + "if 1:\n" for i in range(110)),
    "match": host("match input:\n" + several(" case [1, *a] if a: pass", 3000)),
    "prints": device(several("for i in range(n):\n  tl.device_print('')", 1500)),
    "async": "async def wrapper(input):\n    return await input\n",
}

TEXTS = {f"expression: {k}": host(f"a = {v}\nreturn {v}") for k, v in EXPRESSIONS.items() if len(v) < 40_000}
TEXTS |= {f"expression once: {k}": host(f"return {v}") for k, v in EXPRESSIONS.items()}
TEXTS |= {f"module: {k}": f"X = {v}\n{KERNEL}{WRAPPER}" for k, v in EXPRESSIONS.items()}
TEXTS |= {f"kernel: {k}": device(f"x = {v}") for k, v in EXPRESSIONS.items()}
TEXTS |= {f"default: {k}": KERNEL + WRAPPER.replace("input", f"input={v}", 1) for k, v in EXPRESSIONS.items()}
TEXTS |= PROGRAMS
FOLLOWED = [name for name in PROGRAMS if "kernel" in name or "loop" in name]
# Those take seconds each, and something like each stays.
SLOW = {f"{place}: {name}" for place in ("module", "default") for name in ("starred", "unpacked", "f-strings")}
SLOW |= {"kernel: unpacked", "kernel: f-strings", "prints", "classes", "tables", "imports", "unknown names"}
SLOW |= {"unpacked row", "unpacked choices", "aliases of a module", "loops of targets"}


def check(text: str, profile: Profile) -> None:
    begin = time.thread_time()
    found = lint_text(text, profile)
    assert time.thread_time() - begin < SECONDS
    render(found).encode()
    assert all(v.instead and len(v.problem) <= 300 for v in found)  # noqa: PLR2004 - characters
    begin = time.thread_time()
    candidate = read_candidate(text, Path("kernel.py"), profile, "aten::exp")
    assert time.thread_time() - begin < SECONDS
    assert candidate.kernel is not None or candidate.violations


@pytest.mark.parametrize("name", sampled(TEXTS, [name for name in TEXTS if name not in SLOW]))
def test_hostile_text_ends_soon(name):
    check(TEXTS[name], PROFILES[list(TEXTS).index(name) % 3] if name not in PROGRAMS else ANY)


@pytest.mark.parametrize("name", sampled(FOLLOWED, [name for name in FOLLOWED if name not in SLOW]))
def test_hostile_kernel_ends_soon_where_loads_are_followed(name):
    check(PROGRAMS[name], load_profile("mtia-like"))


LEAVES = ["input", "1", "'a'", "torch.float32", "T", "T[0]", "None", "0xffff", "kernel", "x", "tl.float32", "f''"]
WAYS = [
    "({} + {})",
    "{}[{}]",
    "f({}, x={})",
    "[{} for x in {}]",
    "({} if {} else 1)",
    "({} or {})",
    "{{{}: {}}}",
    "f'{{{}}}'",
    "(lambda x: {})",
    "{}.shape",
    "-{}",
    "(x := {})",
    "({}, *{})",
    "kernel[{}](**{})",
    "torch.empty({})",
    "list({})",
    "zip({}, {})",
    "{}.get({})",
    "({} < {} < 2)",
    "not {}",
    "{{**{}}}",
    "tl.load({})",
]
LINES = [
    "a = {}",
    "T = {}",
    "a, *b = {}",
    "a[{}] = {}",
    "a += {}",
    "del a",
    "return {}",
    "assert {}",
    "raise {}",
    "T[0].x = {}",
    "x = y = {}",
    "global T",
    "import os",
    "a: {} = {}",
    "f({})",
    "kernel[(1,)]({}, {})",
    "pass",
    "break",
]
HEADS = [
    "for x in {}:",
    "while {}:",
    "if {}:",
    "with {} as x:",
    "def f(x={}):",
    "class A({}):",
    "async def wrapper(x={}):",
    "@triton.jit\ndef kernel(x, y: {}):",
    "@{}\ndef wrapper(input):",
    "def wrapper(input: {}):",
    "try:",
]


def expression(rng: random.Random, depth: int) -> str:
    if depth <= 0 or rng.random() < 0.2:
        return rng.choice(LEAVES)
    return rng.choice(WAYS).format(*(expression(rng, depth - 1) for _ in range(3)))


def block(rng: random.Random, depth: int, indent: str = "") -> str:
    lines = ""
    for _ in range(rng.randint(1, 5)):
        template = rng.choice(HEADS if depth and rng.random() < 0.5 else LINES)
        text = template.format(*(expression(rng, rng.randint(0, 5)) for _ in range(2)))
        lines += indent + text.replace("\n", f"\n{indent}") + "\n"
        if template in HEADS:
            lines += block(rng, depth - 1, indent + " ")
            lines += f"{indent}finally: pass\n" if template == "try:" else ""
    return lines


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_end_soon(seed):
    rng = random.Random(seed)
    source = KERNEL + block(rng, 5)
    check(source, PROFILES[seed % 3])
    for _ in range(3):  # and with a part cut out
        start = rng.randrange(len(source))
        check(source[:start] + source[start + rng.randint(1, 30) :], ANY)


def test_blocks_beyond_pythons_limit_are_told():
    assert lint(host(loops(20) + "\nreturn input"), ANY) == []
    found = lint(host(loops(21) + "\nreturn input"), ANY)
    assert [v.rule for v in found] == ["depth"]
    assert "20 loops" in found[0].problem


def test_iterations_of_an_unrolled_loop_are_counted():
    loops_of = {"4096": False, "4097": True, "9, -9000, -1": True, "0, 9000, 3": False, "9, 0": False}
    for bounds, refused in loops_of.items():
        found = lint(device(f"for k in tl.static_range({bounds}):\n    n += k"), ANY)
        assert ("unroll" in {v.rule for v in found}) == refused, bounds


# -- state in tables ---------------------------------------------------------------------------------------------------

STATE = {
    "list in a tuple": ("T = ([],)", "T[0].append(1)"),
    "dict in a tuple": ("T = ({},)", "T[0].update({1: input})"),
    "list in a dict": ("T = {'a': []}", "T['a'].append(1)"),
    "item of a list": ("T = {'a': [1]}", "T['a'][0] = 2"),
    "alias of an item": ("T = {'a': [1]}", "a = T['a']\na.append(2)"),
    "second alias": ("T = {'a': [1]}", "a = T['a']\nb = a\nb[0] = 2"),
    "alias of the table": ("T = {'a': 1}", "t = T\nt['b'] = 2"),
    "added in place": ("T = {'a': [1]}", "a = T['a']\na += [2]"),
    "choice": ("T = {'a': [1], 'b': [2]}", "(T['a'] if input.dim() else T['b']).append(1)"),
    "get": ("T = {'a': [1]}", "T.get('a').append(1)"),
    "get of a get": ("T = {'a': {'b': []}}", "T.get('a').get('b').append(1)"),
    "values": ("T = {'a': [1]}", "for v in T.values():\n    v.append(1)"),
    "items of a copy": ("T = {'a': [1]}", "T.copy()['a'].append(1)"),
    "slice": ("T = [[1], [2]]", "T[:1][0].append(1)"),
    "loop": ("T = [[1], [2]]", "for t in T:\n    t.append(1)"),
    "made by list": ("T = list(([1],))", "T[0].append(1)"),
    "made by dict": ("T = dict(a=[1])", "T['a'].append(1)"),
    "made by tuple": ("T = tuple([[1]])", "T[0].append(1)"),
    "helper": ("T = {'a': 1}\ndef f(configs):\n    configs['b'] = 1", "f(configs=T)"),
    "helper named like a builtin": ("T = {'a': 1}\ndef sorted(t):\n    t['b'] = 1", "sorted(T)"),
    "table in a table": ("T = []\nU = (T,)", "U[0].append(1)"),
    "module alias": ("T = {'a': 1}\nU = T", "U['a'] = 2"),
    "default": ("T = []\ndef f(x=T):\n    x.append(1)", "f()"),
}


@pytest.mark.parametrize("name", STATE)
def test_nothing_in_a_table_of_the_module_changes(name):
    before, body = STATE[name]
    assert "module-state" in {v.rule for v in lint(host(body + "\nreturn input", before), ANY)}


READ = {
    "table of tables": ("T = {'a': {'B': 8}}", "kernel[(1,)](input, B=T['a']['B'])"),
    "alias": ("T = {'a': {'B': 8}}", "c = T['a']\nkernel[(1,)](input, B=c['B'])"),
    "get": ("T = {8: {'B': 8}, 9: {'B': 16}}", "c = T.get(input.dim())\nkernel[(1,)](input, **c)"),
    "choice": ("T = {8: {'B': 8}, 9: {'B': 16}}", "kernel[(1,)](input, **(T[8] if input.dim() else T[9]))"),
    "asked": ("T = {'a': {'B': 8}}", "if 'a' in T and 'B' in T['a']:\n    return input"),
    "tuples": ("T = {torch.float32: (8, 4)}", "b, w = T[input.dtype]\nkernel[(1,)](input, B=b, num_warps=w)"),
    "loop": ("T = [(1, 8), (2, 16)]", "for a, b in T:\n    kernel[(1,)](input, B=b)"),
}


@pytest.mark.parametrize("name", READ)
def test_tables_that_are_only_read_are_clean(name):
    before, body = READ[name]
    assert render(lint(host(body + "\nreturn input", before), ANY)) == ""


# -- what stands where the wrapper should ------------------------------------------------------------------------------

INSTEAD = {
    "async def": "async " + WRAPPER,
    "inside a module-level If": "if True:\n    def wrapper(input):\n        return input\n",
    "inside a module-level ClassDef": "class A:\n    def wrapper(input):\n        return input\n",
    "is a class": "class wrapper:\n    pass\n",
    "is assigned": "wrapper = lambda input: input\n",
    "no function named wrapper": "def run(input):\n    return input\n",
}


@pytest.mark.parametrize("said", INSTEAD)
def test_what_is_there_instead_of_a_wrapper_is_told(said):
    source = 'OVERLOADS = ("aten::exp",)\nDTYPES = ("float32",)\n' + KERNEL + INSTEAD[said]
    found = [v for v in lint(source, ANY) if v.rule == "wrapper"]
    assert len(found) == 1
    assert said in found[0].problem
    with pytest.raises(KernelFileError, match=said):
        KernelFile.parse(source, Path("kernel.py"))


def test_declarations_that_cannot_be_evaluated_are_violations_not_errors():
    source = 'OVERLOADS = {[]: 1}\nDTYPES = ("float32",)\n' + KERNEL + WRAPPER
    candidate = read_candidate(source, Path("kernel.py"), ANY, "aten::exp")
    assert candidate.kernel is None
    assert "overloads" in {v.rule for v in candidate.violations}
    with pytest.raises(UserError, match="OVERLOADS must be a literal tuple"):
        read_candidate(source, Path("kernel.py"), ANY)
