"""Honest style in files of others, each beside the cheat that lies nearest to it."""

from __future__ import annotations

import ast

import pytest

from verify.child.compiler_log import headline
from verify.judging.candidate import completed
from verify.lint import lint, load_profile, render

ANY, STRICT = load_profile("triton-cuda"), load_profile("triton")


def bare(body: str, kernel: str = "tl.store(o_ptr, tl.load(x_ptr))", before: str = "") -> str:
    """A plain answer: one kernel, one wrapper, no imports."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    kernel = "".join(f"    {line}\n" for line in kernel.splitlines())
    head = f"{before}\n\n@triton.jit\ndef kernel(x_ptr, o_ptr, n, B: tl.constexpr = 8):\n{kernel}"
    return f"{head}\n\ndef wrapper(input, other=None):\n{lines}"


def of_module(statement: str, body: str = "return input") -> str:
    return bare(body, before=statement)


LAUNCH = "kernel[(1,)](input, **meta)\nreturn input"
VIEW = "def wrapper(input, dims):\n    return input.permute(dims)\n"
CONSTANT = "tl.store(o_ptr, K)"
LIBRARY = "from triton.language.extra import libdevice"

RECORD = (
    "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass Tile:\n    block: int\n    warps: int = 4\n"
)
TUPLE = "import typing\n\nclass Tile(typing.NamedTuple):\n    width: int\n"
PRUNED = """def prune(configs, named_args, **kwargs):
    kept = [c for c in configs if c.kwargs["B"] <= named_args["n"]]
    return kept or configs[:1]


@triton.autotune(
    [triton.Config({"B": b}, num_warps=w) for b, w in ((8, 1), (16, 2))],
    key=["n"],
    prune_configs_by={"early_config_prune": PRUNE},
)
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    tl.store(x_ptr, tl.load(x_ptr))


def wrapper(input):
    kernel[(1,)](input, input.numel())
    return input
"""

# style: (honest, the rule of the cheat, the cheat)
STYLES = {
    "settings in a dataclass": (
        bare("t = Tile(block=8)\nkernel[(1,)](input, input, t.block, num_warps=t.warps)\nreturn input", before=RECORD),
        "module-state",
        bare("t = Tile(block=8)\nt.block = 9\nreturn input", before=RECORD.replace("(frozen=True)", "")),
    ),
    "a record of the module": (
        bare("kernel[(1,)](input, input, SMALL.width)\nreturn input", before=TUPLE + "\nSMALL = Tile(8)\n"),
        "module-state",
        bare("return input", before=TUPLE + "    def reset(self):\n        return 1\n"),
    ),
    "a tensor in a record": (
        bare("t = Tile(input)\nreturn t.width.view(-1)", before=TUPLE),
        "tensor-operator",
        bare("t = Tile(input.contiguous())\nreturn t.width + 1", before=TUPLE.replace("int", "tuple")),
    ),
    "pruned configurations": (
        PRUNED.replace("PRUNE}", "prune}"),
        "decorator",
        PRUNED.replace("PRUNE}", "lambda c, n, **k: c[:1]}"),
    ),
    "size of the GPU": (
        bare("c = torch.cuda.get_device_properties(input.device).multi_processor_count\nkernel[(c,)](input, input, c)"),
        "attribute",
        bare("c = torch.cuda.get_device_properties(input.device).name\nreturn input"),
    ),
    "sizes in a tensor": (
        bare("m = torch.tensor(list(input.shape) + [1])\nkernel[(1,)](input, m, 1)\nreturn input"),
        "argument",
        bare("m = torch.tensor([input.view(-1)])\nkernel[(1,)](input, m, 1)\nreturn input"),
    ),
    "a view without a kernel": (VIEW, "tensor-operator", VIEW.replace("permute(dims)", "permute(dims) + 1")),
    "delete an item": (
        bare("shape = list(input.shape)\ndel shape[0]\nreturn torch.empty(shape)"),
        "construct",
        bare("shape = list(input.shape)\ndel input.shape\nreturn torch.empty(shape)"),
    ),
    "delete a name": (bare("x = input\ndel x\nreturn input"), "construct", bare("del kernel\nreturn input")),
    "delete of a table": (
        of_module("T = {1: 2}", "t = T[1]\nreturn input"),
        "module-state",
        of_module("T = {1: 2}", "del T[1]\nreturn input"),
    ),
    "bit length": (
        bare("n = input.numel()\nreturn torch.empty(1 << (n - 1).bit_length())"),
        "attribute",
        bare("n = input.numel()\nreturn torch.empty((n - 1).__rpow__(2))"),
    ),
    "unpacked display": (
        bare("meta = {'B': 256, 'n': input.numel(), 'num_warps': 4}\n" + LAUNCH),
        "launch-argument",
        bare("meta = {'B': 256, 'warmup': True}\n" + LAUNCH),
    ),
    "unpacked call of dict": (
        bare("meta = dict(B=256, num_warps=4)\n" + LAUNCH),
        "launch-argument",
        bare("meta = dict(B=256, grid=(1,))\n" + LAUNCH),
    ),
    "unpacked box": (
        bare("n = input.numel()\nmeta = {'n': n}\n" + LAUNCH),
        "launch-argument",
        bare("n = [input]\nmeta = {'n': n}\n" + LAUNCH),
    ),
    "unpacked and added to": (
        bare("meta = {'B': 256}\nmeta['num_warps'] = 8\n" + LAUNCH),
        "launch-argument",
        bare("meta = {'B': 256}\nmeta['warmup'] = True\n" + LAUNCH),
    ),
    "unpacked and updated": (
        bare("meta = {'B': 256}\nn = meta.get('B')\n" + LAUNCH),
        "launch-argument",
        bare("meta = {'B': 256}\nmeta.update(other)\n" + LAUNCH),
    ),
    "unpacked choice": (
        bare("meta = {'B': 64} if input.dim() else {'B': 8}\ngrid = lambda meta: (meta['B'],)\n" + LAUNCH),
        "launch-argument",
        bare("meta = {'B': 64}\nmeta |= {'warmup': True}\n" + LAUNCH),
    ),
    "unpacked result of a helper": (
        bare("kernel[(1,)](input, **meta(8))\nreturn input") + "\n\ndef meta(n):\n    return {'B': n}\n",
        "launch-argument",
        bare("kernel[(1,)](input, **meta(8))\nreturn input") + "\n\ndef meta(n):\n    return {'warmup': n}\n",
    ),
    "unpacked table": (
        of_module("T = {'B': 256}", "meta = {**T, 'num_warps': 4}\n" + LAUNCH),
        "launch-argument",
        of_module("T = {'B': 256, 'warmup': True}", "kernel[(1,)](input, **T)\nreturn input"),
    ),
    "unpacked entry of a table": (
        of_module("T = {'a': {'B': 256}}", "kernel[(1,)](input, **T['a'])\nreturn input"),
        "launch-argument",
        of_module("T = {'a': {'C': 256}}", "kernel[(1,)](input, **T['a'])\nreturn input"),
    ),
    "tensor of one number": (
        bare("n = 2.0\nkernel[(1,)](input, torch.tensor(n, dtype=input.dtype, device=input.device))\nreturn input"),
        "argument",
        bare("return torch.tensor([input.select(0, k) for k in range(3)])"),
    ),
    "tensor of a tensor": (
        bare("return torch.tensor(-1)"),
        "argument",
        bare("return torch.tensor(input.contiguous())"),
    ),
    "tensor of a list": (
        bare("return torch.tensor(True)"),
        "argument",
        bare("a = []\na.append(input.view(-1))\nreturn torch.tensor(a)"),
    ),
    "infinity": (of_module('INF = float("inf")'), "module-state", of_module('INF = float(open("x").read())')),
    "infinity for kernels": (
        bare("return input", CONSTANT, 'K = tl.constexpr(float("-inf"))'),
        "kernel-global",
        bare("return input", CONSTANT, 'K = float("-inf")'),
    ),
    "limit": (
        of_module("LOW, HIGH = -torch.finfo(torch.float32).max, torch.iinfo(torch.int32).max"),
        "module-state",
        of_module("LOW = torch.zeros(3).max"),
    ),
    "two constants": (of_module("A, B = 1, 2"), "module-state", of_module("A, B = 1, {}", "B[1] = A\nreturn input")),
    "two constants at once": (of_module("A, B = 1, 2"), "redefinition", of_module("A, B = 1, 2\nB = 3")),
    "set of dtypes": (
        of_module("FLOATS = frozenset({torch.float16, torch.float32})\nCODES = dict(a=1)"),
        "module-state",
        of_module("CODES = dict(a=1)", "CODES['b'] = input\nreturn input"),
    ),
    "annotated table": (
        of_module("T: dict = {torch.float32: 1}", "n = T[input.dtype]\nreturn input"),
        "module-state",
        of_module("T: dict = {}", "T[1] = input\nreturn input"),
    ),
    "switched off": (
        bare("return torch.empty(3, requires_grad=False, pin_memory=False)"),
        "argument",
        bare("return torch.empty(3, requires_grad=True)"),
    ),
    "passed on": (
        bare("return torch.empty(3, pin_memory=pin_memory)").replace("other=None", "pin_memory=False"),
        "argument",
        bare("return torch.empty(3, out=out)").replace("other=None", "out=None"),
    ),
    "type in a message": (
        bare("assert other is None, f'{type(other)}'\nraise TypeError(f'no kernel for {type(other).__name__}')"),
        "builtin",
        bare("return type(other)(input)"),
    ),
    "type in an error": (
        bare("if other is None:\n    raise TypeError(type(input))\nreturn input"),
        "builtin",
        bare("if other is None:\n    raise TypeError('no kernel')\nreturn type('Lazy', (), {})"),
    ),
    "prints": (
        bare("return input", "tl.static_print('B', B)\ntl.device_print('n', n)\nprint('n', n)"),
        "name",
        bare("return input", "for k in range(2000):\n    tl.device_print('PASS', n)"),
    ),
    "prints of Python": (
        bare("return input", "if B:\n    print('n', n)"),
        "builtin",
        bare("return input", "while n:\n    print('PASS')"),
    ),
    "alignment": (
        bare("kernel[(1,)](input, input, input.data_ptr() % 16 == 0)\nreturn input"),
        "attribute",
        bare("kernel[(1,)](input, input, input.data_ptr())\nreturn input"),
    ),
    "alignment with an argument": (
        bare("return other if input.data_ptr() % 16 and other is not None else input"),
        "attribute",
        bare("return input if input.data_ptr(torch.exp(input)) % 16 else other"),
    ),
    "alignment by another number": (
        bare("return input if not input.data_ptr() % 16 else other"),
        "attribute",
        bare("return input if input.data_ptr() % 4096 else other"),
    ),
    "alignment as a number": (
        bare("return input if input.data_ptr() % 16 != 0 else other"),
        "attribute",
        bare("return input if input.data_ptr() % 16 == 8 else other"),
    ),
    "alignment that is kept": (
        bare("aligned = input.data_ptr() % 16 == 0\nreturn input if aligned else other"),
        "attribute",
        bare("k = input.data_ptr() % 16\nreturn input if k else other"),
    ),
    "text of numbers": (
        bare("raise ValueError('{} of {n:>{width}}'.format(input.shape, n=1, width=3))"),
        "introspection",
        bare("return '{0.shape}'.format(other)"),
    ),
    "text that is no literal": (
        bare("return input if '{0}'.format(other) == 'a' else other"),
        "introspection",
        bare("t = '{0' + '.fn}'\nreturn t.format(other)"),
    ),
    "text in a field": (
        bare("return input if f'{other:>8}' == 'a' else other"),
        "introspection",
        bare("return '{0:{1.fn}}'.format(other, other)"),
    ),
    "asked for an attribute": (
        bare("return input if hasattr(other, 'shape') else other"),
        "introspection",
        bare("return input if hasattr(other, 'fn') else other"),
    ),
    "conversion": (
        bare("x = input.to(torch.float32)\ny = x.to(dtype=input.dtype)\nkernel[(1,)](x.half(), y)\nreturn y"),
        "argument",
        bare("return input.to('cpu')"),
    ),
    "conversion by a device": (
        bare("d = torch.float16 if other else input.dtype\nreturn input.to(d)"),
        "argument",
        bare("return input.to(other.device)"),
    ),
    "guard by device": (
        bare("assert input.is_cuda, f'{input.device}'\nif not other.is_cuda:\n    raise ValueError\nreturn input"),
        "introspection",
        bare("if input.is_cpu:\n    return other\nreturn input"),
    ),
    "guard by gradients": (
        bare("assert not input.requires_grad\nreturn input"),
        "introspection",
        bare("kernel[(1 if input.requires_grad else 2,)](input)\nreturn input"),
    ),
    "text of a method": (
        bare("dims = sorted(range(input.dim()), key=input.stride)\nraise ValueError(f'{input.stride()} {dims}')"),
        "introspection",
        bare("text = f'{input.stride}'\nkernel[(1 if text.endswith('0>') else 2,)](input)\nreturn input"),
    ),
    "text of an iterator": (
        bare("raise ValueError(f'{tuple(zip(input.shape, input.stride()))}')"),
        "introspection",
        bare("text = f'{zip(input.shape, input.stride())}'\nkernel[(len(text),)](input)\nreturn input"),
    ),
    "current device": (
        bare("with torch.cuda.device(input.device.index):\n    kernel[(1,)](input)\nreturn input"),
        "introspection",
        bare("kernel[(2 if input.get_device() < 0 else 1,)](input)\nreturn input"),
    ),
    "block pointers": (
        bare("return input", "p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (8,), (0,))\np = tl.advance(p, (8,))"),
        "name",
        bare("return input", "tl.store(o_ptr, tl.inline_asm_elementwise('', '=r,r', [n], tl.int32, True, 1))"),
    ),
    "device library": (
        bare("return input", "tl.store(o_ptr, libdevice.tanh(tl.load(x_ptr)))", LIBRARY),
        "name",
        bare("return input", "tl.store(o_ptr, libdevice.byte_perm(n, n, n))", LIBRARY),
    ),
    "device library of CUDA": (
        bare("return input", "tl.store(o_ptr, tl.extra.cuda.libdevice.pow(tl.load(x_ptr), 2.0))"),
        "name",
        bare("return input", "tl.store(o_ptr, tl.extra.cuda.utils.smid())"),
    ),
    "device library by its module": (
        bare("return input", "tl.store(o_ptr, ld.erf(tl.load(x_ptr)))", "import triton.language.extra.libdevice as ld"),
        "scope",
        bare("return libdevice.tanh(input)", before=LIBRARY),
    ),
}


@pytest.mark.parametrize("name", STYLES)
def test_honest_style_is_clean_and_the_cheat_beside_it_is_not(name):
    honest, rule, cheat = STYLES[name]
    assert render(lint(honest, ANY)) == ""
    assert rule in {v.rule for v in lint(cheat, ANY)}


def test_a_file_of_the_library_has_a_kernel():
    assert "no-kernel" in {v.rule for v in lint(VIEW, STRICT)}
    assert lint(VIEW, ANY) == []


@pytest.mark.parametrize("name", [n for n in STYLES if n not in ("a view without a kernel", "delete of a table")])
def test_the_library_keeps_to_its_own_style(name):
    declared = {"docstring", "overloads", "dtypes", "import", "unknown-name"}
    assert {v.rule for v in lint(STYLES[name][0], STRICT)} - declared


# -- making a file whole -----------------------------------------------------------------------------------------------

REST = "import torch\n\n\ndef wrapper(x):\n    return missing\n"


@pytest.mark.parametrize(
    "head",
    [
        "# op: aten::exp\nfrom __future__ import annotations\n",
        '# op: aten::exp\n"""Über."""; from __future__ import annotations  # late\n',
        "from __future__ import (\n    annotations,\n); import math as m\n",
        "from __future__ import annotations\nfrom __future__ import division\n",
        "# op: aten::exp\n",
        "\n",
    ],
)
def test_future_imports_stay_first_and_lines_where_they_are(head):
    whole = completed(head + REST, ["aten::exp"])
    compile(whole, "kernel.py", "exec")
    names = {t.id for n in ast.parse(whole).body if isinstance(n, ast.Assign) for t in n.targets}
    assert names == {"OVERLOADS", "DTYPES"}
    assert whole.split("\n").index("    return missing") == (head + REST).split("\n").index("    return missing")
    assert ast.get_docstring(ast.parse(whole)) == ast.get_docstring(ast.parse(head + REST))


# -- what the compiler said --------------------------------------------------------------------------------------------

PTXAS = """PTXASError: PTXAS error: Internal Triton PTX codegen error
`ptxas` stderr:
ptxas /tmp/tmpabc.ptx, line 48; error   : Modifier '.evict_last' cannot be combined with modifier '.ca'
ptxas fatal   : Ptx assembly aborted due to errors

Repro command: ptxas -lineinfo -v --gpu-name=sm_90a /tmp/tmpabc.ptx -o /tmp/tmpabc.ptx.o
"""
TRITON = "CompilationError: at 3:4:\n    x = 1\n    y = tl.nothing(x)\n    ^\nmodule has no attribute 'nothing'\n"
BLOCK_POINTERS = (
    "CompilationError: at 1:4:\n    ^\nBlock pointers have been removed in favor of the tensor descriptor API"
)


def test_headline_of_a_compilers_log():
    assert headline(PTXAS).endswith("error   : Modifier '.evict_last' cannot be combined with modifier '.ca'")
    assert "Repro" not in headline(PTXAS)
    assert headline(TRITON) == "CompilationError: at 3:4: module has no attribute 'nothing'"
    assert "tl.make_tensor_descriptor" in headline(BLOCK_POINTERS)
    assert headline("") == "no log"
