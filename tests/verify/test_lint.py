"""Every rule of the lint has a bad source here that must trip it, and honest style must pass."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language.extra.libdevice
from shared import sampled

from generate import BLOCKS
from traces import UserError
from verify.lint import ANY_FILE, lint, lint_answer, load_profile, profile_names, render
from verify.lint.names import LANGUAGES, RULES

ROOT = Path(__file__).parents[2]
PROFILE = load_profile().with_blocks(BLOCKS)

CLEAN = '''"""aten::mul.Tensor(Tensor self, Tensor other) -> Tensor

One flat grid over the broadcast output, computed in fp32.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::mul.Tensor",)
DTYPES = ("bfloat16", "float16", "float32")

SCALE = tl.constexpr(1.0 / math.sqrt(2.0))
LANES = 128
TYPE = tl.constexpr(tl.int32)


@triton.jit
def strided(i, shape, stride):
    """Offset of row-major flat index i."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    return offset


@triton.jit
def kernel_mul(x_ptr, y_ptr, o_ptr, n, low: "fp64", shape, xs, ys, os, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + strided(i, shape, xs), mask=m).to(tl.float32)
    y = tl.load(y_ptr + strided(i, shape, ys), mask=m, other=0.0)
    x = tl.where(x > low, x, float("-inf")) * SCALE
    tl.store(o_ptr + strided(i, shape, os), (x * y).to(o_ptr.dtype.element_ty), mask=m)


def block_size(n: int) -> int:
    return min(1024, max(LANES, triton.next_power_of_2(n)))


def wrapper(self, other, *, out=None):
    if not isinstance(other, torch.Tensor):
        raise TypeError(f"other is no tensor, self has shape {self.shape}")
    self, other = torch.broadcast_tensors(self, other)
    if out is None:
        dtype = torch.promote_types(self.dtype, other.dtype)
        out = torch.empty_like(self, dtype=dtype, memory_format=torch.contiguous_format)
    low = torch.finfo(out.dtype).min if out.dtype.is_floating_point else -math.inf
    n = out.numel()
    dims = [i for i in range(out.dim()) if out.stride(i) != 0]
    order = sorted(dims, key=lambda d: (-out.stride(d), d))
    if n and order is not None:
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        shape = tuple(out.shape)
        kernel_mul[grid](
            self, other, out, n, low, shape, self.stride(), other.stride(), out.stride(), BLOCK=block_size(n)
        )
    return out
'''


@pytest.mark.parametrize(
    "body",
    [
        "return 1.0 if isinstance(other, torch.Tensor) or other is None else float(other)",
        "return float(other) if other is not None and not isinstance(other, torch.Tensor) else 1.0",
        "given = isinstance(other, torch.Tensor)\nreturn 1.0 if given or other is None else float(other)",
        "n = other is not None and not isinstance(other, torch.Tensor)\nreturn float(other) if n else 1.0",
        "t = isinstance(other, torch.Tensor)\nn = other is not None and not t\nreturn float(other) if n else 1.0",
        "n = not isinstance(other, torch.Tensor)\nreturn 1.0 if n and (other is None or not -1 <= other < 1) else 0.5",
        "return 1.0 if isinstance(other, torch.Tensor) or float(other) > 1 else 0.5",
    ],
)
def test_what_is_no_tensor_may_be_a_number(body):
    assert not lint(wrapper(body), load_profile())


def test_clean_source_has_no_violation():
    assert render(lint(CLEAN, PROFILE, "aten::mul.Tensor")) == ""


def wrapper(body: str, parameters: str = "self, other, *, out=None") -> str:
    """CLEAN with another wrapper."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return CLEAN[: CLEAN.index("def wrapper")] + f"def wrapper({parameters}):\n{lines}"


def kernel(body: str, parameters: str = "x_ptr, n, BLOCK: tl.constexpr") -> str:
    """CLEAN with another kernel in front of the first."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return CLEAN.replace("@triton.jit", f"@triton.jit\ndef kernel_bad({parameters}):\n{lines}\n\n@triton.jit", 1)


def module(statement: str) -> str:
    """CLEAN with another module-level statement."""
    return CLEAN.replace("LANES = 128", f"LANES = 128\n{statement}")


# rule -> {what it is about: source}
BAD: dict[str, dict[str, str]] = {
    "size": {"huge": CLEAN + "# " + "x" * 200_000},
    "encoding": {
        "null byte": CLEAN + "\0",
        "byte order mark": "\ufeff" + CLEAN,
        "form feed": CLEAN + "\f",
        "lone surrogate": CLEAN + "# \ud800",
        "coding cookie": "# -*- coding: utf-7 -*-\n" + CLEAN,
    },
    "syntax": {
        "unclosed": CLEAN + "x = (",
        "parentheses": "x = " + "(" * 10_000 + ")" * 10_000,
        "indentation": "if 1:\n" + "".join(" " * i + "if 1:\n" for i in range(1, 200)),
    },
    "depth": {
        "unary chain": "x = " + "-" * 50_000 + "1",
        "sum chain": "x = " + "1+" * 40_000 + "1",
        "attribute chain": "x = a" + ".a" * 40_000,
        "call chain": "x = a" + "()" * 40_000,
        "nested lists": "x = " + "[" * 90 + "]" * 90,
        "not chain": "x = not " + "not " * 20_000 + "1",
    },
    "blocks": {
        "no module": CLEAN.replace("import torch", "from blocks.nothing import x\nimport torch", 1),
        "no name": CLEAN.replace("import torch", "from blocks.elementwise import nothing\nimport torch", 1),
        "whole": CLEAN.replace("import torch", "import blocks.elementwise\nimport torch", 1),
    },
    "docstring": {"none": CLEAN[CLEAN.index("import math") :], "other schema": CLEAN.replace('"""aten::mul.T', '"""T')},
    "overloads": {
        "missing": CLEAN.replace('OVERLOADS = ("aten::mul.Tensor",)\n', ""),
        "not a tuple": CLEAN.replace('("aten::mul.Tensor",)', '["aten::mul.Tensor"]'),
        "another operator": CLEAN.replace("aten::mul.Tensor", "aten::div.Tensor"),
    },
    "dtypes": {
        "missing": CLEAN.replace("DTYPES", "TYPES"),
        "unknown": CLEAN.replace('"float16"', '"float17"'),
        "computed": CLEAN.replace('DTYPES = ("bfloat16"', 'DTYPES = (str("bfloat16")'),
    },
    "layouts": {
        "unknown": module('LAYOUTS = ("sparse_csr", "strided")'),
        "no tuple": module('LAYOUTS = "sparse_coo"'),
        "computed": module('LAYOUTS = tuple("strided".split())'),
    },
    "import": {
        "numpy": CLEAN.replace("import math\n", "import numpy as np\n"),
        "from torch": CLEAN.replace("import math\n", "from torch import exp\n"),
        "alias": CLEAN.replace("import math\n", "import math as torch_math\n"),
        "nested": wrapper("import os\nreturn self"),
        "future": CLEAN.replace("import math\n", "from __future__ import annotations\n"),
        "relative": CLEAN.replace("import math\n", "from . import secret\n"),
        "kernel library": CLEAN.replace("import math\n", "import flag_gems\n"),
    },
    "module-state": {
        "cache": module("CACHE = {}"),
        "list": module("SEEN = []"),
        "code": module("print('hello')"),
        "class": module("class Lazy(torch.Tensor): pass"),
        "monkeypatch": module("torch.allclose = lambda *a, **k: True"),
        "condition": module("if True:\n    X = 1"),
        "huge power": module("X = 2 ** 10 ** 9"),
        "call": module("X = torch.zeros(3)"),
        "loop": module("for X in (1, 2): pass"),
        "delete": module("del LANES"),
        "walrus": module("(k := 3)"),
        "annotated": module("Y: int = 3"),
        "no type": module("T = tl.constexpr(tl.load)"),
        "unknown type": module("T = tl.constexpr(tl.float17)"),
    },
    "redefinition": {
        "wrapper": CLEAN + "\n\ndef wrapper(self, other):\n    return self\n",
        "constant": module("LANES = 256"),
        "import": module("def math(x):\n    return x"),
    },
    "shadowing": {
        "parameter": wrapper("return torch.softmax(self, -1)", "self, other, torch=None"),
        "star target": wrapper("a, *tl = self.shape\nreturn self"),
        "kernel": wrapper("kernel_mul = 1\nreturn self"),
        "for target": wrapper("for triton in self.shape:\n    pass\nreturn self"),
        "in a kernel": kernel("tl = x_ptr"),
        "special name": wrapper("__builtins__ = 1\nreturn self"),
        "function": module("def tl(x):\n    return x"),
    },
    "wrapper": {
        "missing": CLEAN.replace("def wrapper", "def run"),
        "jit": CLEAN.replace("def wrapper", "@triton.jit\ndef wrapper"),
    },
    "wrapper-signature": {
        "too few": wrapper("return self", "self"),
        "required extra": wrapper("return self", "self, other, alpha"),
        "by name": wrapper("return self").replace("Tensor other)", "Tensor other, *, Scalar alpha=1)"),
        "variadic": wrapper("return args[0]", "*args"),
    },
    "no-kernel": {"host only": CLEAN[: CLEAN.index("@triton")] + "def wrapper(self, other):\n    return self\n"},
    "decorator": {
        "autotune": CLEAN.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit", 1),
        "called": CLEAN.replace("@triton.jit", "@triton.jit(debug=True)", 1),
        "no_grad": CLEAN.replace("def wrapper", "@torch.no_grad()\ndef wrapper"),
        "any": CLEAN.replace("def block_size", "@staticmethod\ndef block_size"),
    },
    "annotation": {
        "code": CLEAN.replace("n: int", "n: print('at import')"),
        "string": CLEAN.replace("n: int", "n: 'torch.exp'"),
        "kernel": kernel("pass", "x_ptr, n: torch.Tensor"),
        "kernel string": kernel("pass", "x_ptr, n: 'int'"),
        "kernel local": kernel("a: int = 1"),
        "host local": wrapper("a: exec('1') = 1\nreturn self"),
        "return": kernel("return n").replace("constexpr):\n    return n", "constexpr) -> int:\n    return n"),
    },
    "default-argument": {
        "mutable": wrapper("return self", "self, other, memo={}"),
        "call": wrapper("return self", "self, other, memo=print(1)"),
        "module": wrapper("return self", "self, other, lib=torch.nn"),
        "kernel": kernel("pass", "x_ptr, n=[]"),
    },
    "construct": {
        "try": wrapper("try:\n    return self\nexcept RuntimeError:\n    return torch.exp(self)"),
        "with": wrapper("with self as x:\n    return x"),
        "class": wrapper("class M:\n    pass\nreturn self"),
        "nested function": wrapper("def f(x):\n    return x\nreturn f(self)"),
        "global": wrapper("global LANES\nLANES = 1\nreturn self"),
        "delete": wrapper("del self\nreturn other"),
        "yield": wrapper("yield self"),
        "match": wrapper("match self.dim():\n    case 1:\n        return self"),
        "async": wrapper("async def f():\n    return 1\nreturn self"),
        "kernel try": kernel("try:\n    pass\nfinally:\n    pass"),
        "kernel with": kernel("with n:\n    pass"),
        "kernel break": kernel("for k in range(n):\n    break"),
        "kernel lambda": kernel("f = lambda x: x"),
        "kernel import": kernel("import os"),
        "kernel nested": kernel("def f(x):\n    return x"),
        "kernel dict": kernel("d = {1: 2}"),
        "kernel walrus": kernel("tl.store(x_ptr, (k := 1))"),
    },
    "name": {
        "torch function": wrapper("return torch.exp(self)"),
        "functional": wrapper("return torch.nn.functional.softmax(self, dim=0)"),
        "ops": wrapper("return torch.ops.aten.exp.default(self)"),
        "linalg": wrapper("return torch.linalg.svd(self)"),
        "out": wrapper("torch.exp(self, out=out)\nreturn out"),
        "zeros": wrapper("return torch.zeros_like(self)"),
        "stdlib through torch": wrapper("torch.os.remove('x')\nreturn self"),
        "stdlib through triton": wrapper("triton.testing.subprocess.run(['true'])\nreturn self"),
        "compile": wrapper("return torch.compile(self)(other)"),
        "alias": wrapper("f = torch.nn.functional\nreturn f.softmax(self)"),
        "alias of a function": wrapper("f = torch.exp\nreturn f(self)"),
        "class method": wrapper("return torch.Tensor.exp(self)"),
        "autograd": wrapper("return torch.autograd.grad(self)"),
        "flags": wrapper("torch.set_float32_matmul_precision('medium')\nreturn self"),
        "unknown tl": kernel("tl.store(x_ptr, tl.tanh(n))"),
        "libdevice": kernel("tl.store(x_ptr, tl.extra.cuda.libdevice.exp(n))"),
        "assembly": kernel("tl.inline_asm_elementwise('', '', [n], tl.int32, True, 1)"),
        "print": kernel("tl.device_print('PASS')"),
    },
    "scope": {
        "tl in the wrapper": wrapper("return tl.exp(self)"),
        "tl function in the wrapper": wrapper("kernel_mul[(1,)](self, ACC=tl.arange)\nreturn self"),
        "torch in a kernel": kernel("torch.exp(x_ptr)"),
        "math in a kernel": kernel("tl.store(x_ptr, math.sqrt(2.0))"),
        "triton in a kernel": kernel("k = triton.cdiv(n, BLOCK)"),
        "helper in a kernel": kernel("k = block_size(n)"),
    },
    "module-value": {
        "comprehension": wrapper("return [lib.exp(self) for lib in (torch,)][0]"),
        "walrus": wrapper("return (k := torch).exp(self)"),
        "argument": wrapper("return block_size(torch)"),
        "function as a value": wrapper("a = list(map(torch.empty_like, [self]))\nreturn a[0]"),
        "type as a value": wrapper("t = (torch.Tensor,)\nreturn self"),
        "in a kernel": kernel("m = tl\nm.exp(n)"),
    },
    "function-value": {"helper": wrapper("f = {'a': block_size}\nreturn self")},
    "introspection": {
        "type of a device": wrapper("return self if self.device.type == 'cpu' else other"),
        "device by itself": wrapper("n = 1 if self.device == torch.device(other) else 2\nreturn self.view(n)"),
        "text of a device": wrapper("return self.view(len(str(self.device)))"),
        "f-string of a device": wrapper("return self.view(f'{self.device}'.count('c'))"),
        "device in a tuple": wrapper("where = (self.device, 1)\nd, n = where\nreturn d.type == 'cpu'"),
        "device in a list": wrapper("found = []\nfound.append(self.device)\nreturn str(found[0])"),
        "device in a dict": wrapper("d = {'at': self.device}\nreturn str(d['at'])"),
        "device given to a helper": wrapper("return name(self.device)") + "\n\ndef name(at):\n    return str(at)\n",
        "device in the grid": wrapper("d = self.device.index\nkernel_mul[(d,)](self)\nreturn self"),
        "device handed to a kernel": wrapper("kernel_mul[(1,)](self, self.device.index)\nreturn self"),
        "device in a while": wrapper("while self.device.type == 'cpu':\n    return self\nreturn other"),
        "kept in a guard": wrapper("if (c := self.device.type == 2) is None:\n    raise ValueError\nreturn c or self"),
        "text of a kernel": wrapper("return str(kernel_mul)"),
        "f-string of a kernel": wrapper("return f'{kernel_mul}'"),
        "format": wrapper("return '{0.fn}'.format(kernel_mul)"),
    },
    "readback": {
        "values one by one": wrapper("return [self.select(0, k).item() for k in range(2)]"),
        "while": wrapper("k = 0\nwhile k < 9:\n    k += self.select(0, k).item()\nreturn self"),
    },
    "attribute": {
        "compute": wrapper("return self.sum()"),
        "in place": wrapper("return self.add_(other)"),
        "unknown value": wrapper("return [x.exp() for x in map(list, (self.shape,))]"),
        "numpy": wrapper("return self.numpy()"),
        "data_ptr": wrapper("return self.data_ptr()"),
        "contiguous": wrapper("return self.contiguous()"),
        "conversion": wrapper("return self.to(torch.float16)"),
        "conversion by type": wrapper("return self.type(torch.float16)"),
        "dunder": wrapper("return self.__add__(other)"),
        "globals": wrapper("return wrapper.__globals__"),
        "builtins": wrapper("return len.__self__"),
        "kernel body": wrapper("return kernel_mul.fn(self)"),
        "list of limits": wrapper("return self.min"),
        "frames": wrapper("return self.f_back"),
        "handle": kernel("x_ptr.handle.data[:] = 1"),
        "append in a kernel": kernel("x_ptr.append(n)"),
        "dunder in a kernel": kernel("x_ptr.__class__"),
    },
    "builtin": {
        "getattr": wrapper("return getattr(torch, 'e' + 'xp')(self)"),
        "eval": wrapper("return eval('torch.exp')(self)"),
        "open": wrapper("open('/tmp/x', 'w')\nreturn self"),
        "globals": wrapper("return globals()['torch']"),
        "import": wrapper("return __import__('os')"),
        "print": wrapper("print('PASS')\nreturn self"),
        "exit": wrapper("raise SystemExit(0)"),
        "builtins dict": wrapper("return __builtins__['eval']"),
        "kernel open": kernel("open('x')"),
        "kernel print": kernel("print(n)"),
        "kernel getattr": kernel("getattr(n, 'x')"),
    },
    "unknown-name": {
        "misspelt": wrapper("return slef"),
        "in a kernel": kernel("tl.store(x_ptr, m)"),
        "math without import": CLEAN.replace("import math\n", ""),
    },
    "call": {
        "local": wrapper("f = self.shape\nreturn f(1)"),
        "lambda": wrapper("return (lambda x: x)(self)"),
        "of a call": wrapper("return block_size(1)(2)"),
        "in a kernel": kernel("f = n\nf(1)"),
        "builtin subscript": wrapper("return list[int](self.shape)"),
    },
    "tensor-operator": {
        "matmul": wrapper("return self @ other"),
        "matmul of unknowns": wrapper("a, b = other.shape\nreturn a @ b"),
        "add": wrapper("return self + 1"),
        "power": wrapper("return 2 ** self"),
        "negate": wrapper("return -self"),
        "compare": wrapper("return self > 0"),
        "in place": wrapper("out = torch.empty_like(self)\nout += self\nreturn out"),
        "truth": wrapper("if self:\n    return self\nreturn other"),
        "or": wrapper("return out or self"),
        "not": wrapper("return not self"),
        "in": wrapper("return 1 in self.unbind() or self in (other,)"),
        "view": wrapper("return self.unsqueeze(0) * 2"),
        "tuple element": wrapper("a, b = torch.broadcast_tensors(self, other)\nreturn a - b"),
        "loop": wrapper("for a, b in zip(self.unbind(), other.unbind()):\n    out = a * b\nreturn out"),
        "helper": wrapper("return helper(self)") + "\n\ndef helper(x):\n    return x * x\n",
        "helper result": wrapper("return new(self) * 2") + "\n\ndef new(x):\n    return torch.empty_like(x)\n",
        "narrowed": wrapper("x = [self, 1][0]\nif isinstance(x, torch.Tensor):\n    return x + 1\nreturn self"),
        "after a guard": wrapper("x = [self, 1][0]\nif not isinstance(x, torch.Tensor):\n    return 1\nreturn x + 1"),
        "another by now": wrapper("n = not isinstance(other, torch.Tensor)\nother = self\nreturn -other if n else 1"),
        "named twice": wrapper(
            "if other:\n    n = True\nelse:\n    n = not isinstance(self, torch.Tensor)\nreturn self + 1 if n else 0"
        ),
        "named again": wrapper("n = not isinstance(self, torch.Tensor)\nn = True\nreturn self + 1 if n else 0"),
        "one of two": wrapper("return self + 1 if isinstance(self, torch.Tensor) or out else 0"),
        "neither": wrapper("return 0 if isinstance(other, torch.Tensor) and out else other + 1"),
        "before it is asked": wrapper("return other + 1 if other + 1 and not isinstance(other, torch.Tensor) else 0"),
        "asked in vain": wrapper("return 0 if not isinstance(other, torch.Tensor) or other + 1 else 1"),
        "a name of a name": wrapper(
            "n = not isinstance(other, torch.Tensor)\nm = n and out is None\nother = self\nreturn other + 1 if m else 0"
        ),
        "in a loop": wrapper(
            "for x in (1, self):\n    n = not isinstance(x, torch.Tensor)\n    x = self\n    x + 1 if n else 0"
        ),
        "list parameter": wrapper("return self[0] + 1").replace("(Tensor self", "(Tensor[] self"),
        "conditional": wrapper("x = self if self.dim() else other\nreturn x + 1"),
    },
    "tensor-indexing": {
        "load": wrapper("return self[0]"),
        "mask": wrapper("return self[other]"),
        "store": wrapper("out[0] = 1\nreturn out"),
        "slice": wrapper("return self[1:]"),
        "augmented": wrapper("out[0] += 1\nreturn out"),
    },
    "tensor-builtin": {
        "abs": wrapper("return abs(self)"),
        "sum": wrapper("return sum(self.unbind())"),
        "float": wrapper("return float(self)"),
        "map": wrapper("return list(map(abs, [self]))"),
        "format": wrapper("raise RuntimeError(f'{self}')"),
        "format spec": wrapper("raise RuntimeError(f'{1:{abs(self)}}')"),
    },
    "lambda": {
        "copy": wrapper("kernel_mul[lambda meta: (self.unsqueeze(0).numel(),)](self)\nreturn self"),
        "value": wrapper("f = (lambda x: x, 1)\nreturn self"),
        "allocation": wrapper("kernel_mul[lambda meta: (torch.empty(3).numel(),)](self)\nreturn self"),
        "launch": wrapper("kernel_mul[lambda meta: (kernel_mul[(1,)](self),)](self)\nreturn self"),
        "helper": wrapper("kernel_mul[lambda meta: (block_size(3),)](self)\nreturn self"),
        "default": wrapper("kernel_mul[lambda meta, x=1: (x,)](self)\nreturn self"),
        "argument": wrapper("kernel_mul[(1,)](lambda: self)\nreturn self"),
    },
    "launch": {
        "no grid": wrapper("kernel_mul(self, other)\nreturn self"),
        "no call": wrapper("kernel_mul[(1,)]\nreturn self"),
    },
    "launch-argument": {
        "warmup": wrapper("kernel_mul[(1,)](self, warmup=True)\nreturn self"),
        "box": wrapper("box = [self]\nkernel_mul[(1,)](box)\nreturn box[-1]"),
        "filled later": wrapper("box = []\nbox.append(self)\nkernel_mul[(1,)](x_ptr=box)\nreturn self"),
        "dict": wrapper("kernel_mul[(1,)]({'a': self})\nreturn self"),
    },
    "assignment": {
        "flag": wrapper("torch.backends.cuda.matmul.allow_tf32 = True\nreturn self"),
        "function state": wrapper("wrapper.last = self\nreturn self"),
        "tensor class": wrapper("torch.Tensor.exp = torch.Tensor.abs\nreturn self"),
        "in a kernel": kernel("x_ptr[0] = 1"),
    },
    "kernel-global": {"plain number": kernel("tl.store(x_ptr, LANES)")},
    "argument": {
        "out": wrapper("return torch.empty_like(self, out=other)"),
        "requires grad": wrapper("return torch.empty(3, requires_grad=True)"),
        "another device": wrapper("return torch.empty(3, device='meta')"),
        "a device of its own": wrapper("return torch.empty(3, device=torch.device('cuda'))"),
    },
    "endless-loop": {
        "wrapper": wrapper("while True:\n    pass"),
        "kernel": kernel("while 1:\n    n += 1"),
    },
    "unroll": {"a million": kernel("for k in tl.static_range(0, 1000000):\n    n += k")},
}  # fmt: skip

ANSWERS = {
    "empty": "",
    "prose only": "I would write a kernel with tl.exp.",
    "two blocks": f"```python\n{CLEAN}```\nor\n```python\n{CLEAN}```",
    "cut off": f"```python\n{CLEAN[:200]}",
    "untagged": f"```\n{CLEAN}```",
    "one megabyte": "x" * 1_000_000,
}


OF_OTHER_PROFILES = {
    *("answer-format", "scatter-store", "half-maths", "alignment"),  # test_lint_profiles.py
    "library-call",  # test_self_consistent.py
}


def test_every_rule_has_a_bad_source():
    assert BAD.keys() | OF_OTHER_PROFILES == RULES


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, cases in BAD.items() for name in cases])
def test_bad_source_trips_its_rule(rule, name):
    overload = "aten::mul.Tensor" if rule == "overloads" else None
    found = lint(BAD[rule][name], PROFILE, overload)
    assert rule in {v.rule for v in found}, render(found)


@pytest.mark.parametrize("name", ANSWERS)
def test_answer_of_the_wrong_form(name):
    source, found = lint_answer(ANSWERS[name], PROFILE)
    assert source is None
    assert [v.rule for v in found] == ["answer-format"]


@pytest.mark.parametrize(
    "answer", [f"```python\n{CLEAN}```", f"Here:\r\n```py\n{CLEAN}```\nDone.\n```text\nnotes\n```\n"]
)
def test_the_one_python_block_is_taken(answer):
    assert lint_answer(answer, PROFILE, "aten::mul.Tensor") == (CLEAN, [])


def test_a_fence_inside_the_file_does_not_end_it():
    source = CLEAN.replace("One flat grid", "    ```\n    not a fence\n    ```\nOne flat grid")
    assert lint_answer(f"````python\n{source}````", PROFILE)[0] == source


def test_all_violations_are_reported_at_once_with_line_and_advice():
    found = lint(wrapper("import os\nx = self.contiguous()\nreturn torch.exp(x) + eval('1')"), PROFILE)
    assert {"import", "attribute", "name", "tensor-operator", "builtin"} <= {v.rule for v in found}
    assert all(v.instead and v.line for v in found)
    assert "[attribute] .contiguous is not allowed in host code (line" in render(found)
    assert "instead: compute it in a @triton.jit kernel, with tl.exp" in render(found)


HONEST_BODIES = {
    "kernel chosen from a table": "table = {'a': kernel_mul}\nk = table['a']\nk[(1,)](self)\nreturn self",
    "scalar or tensor": "if isinstance(other, torch.Tensor):\n    return other\nreturn other * 2",
    "a test by its name": "n = not isinstance(other, torch.Tensor)\nif n:\n    return int(other) * 2\n"
    "return self.expand(2) if not n else float(other)",
    "views": "x = self.permute(1, 0).unsqueeze(0).expand(2, -1, -1)\nreturn x.view(torch.uint8)",
    "loop over chunks": "for t in self.split(2):\n    kernel_mul[(1,)](t, t.numel())\nreturn self",
    "shape arithmetic": "m, n = self.shape\nk = m * n // 2\ns = [1] * k + list(self.shape)\nreturn s[1:] + [s[0] ** 2]",
    "optional tensor": "w = self if other is None else other\nreturn w",
    "words in strings": "raise RuntimeError('never eval(open(x)) or torch.exp')",
    "rebinding": "x = self\nx = x.numel()\nreturn x + 1",
    "product of sizes": "k = math.prod(self.shape)\nreturn divmod(k, max(1, self.size(0)))",
    "device": "x = torch.empty(self.shape, device=self.device)\nif self.device != other.device:\n"
    "    raise ValueError(f'{self.device} and {other.device}')\nreturn x",
    "guard by device": "if not self.device.type == 'cuda':\n    raise ValueError('no GPU')\nreturn self",
    "kernel or none": "k = kernel_mul if other else None\nif k is not None:\n    k[(1,)](self)\nreturn self",
    "while": "n = 4\nwhile n > 0:\n    n -= 1\nreturn self",
}


@pytest.mark.parametrize("name", HONEST_BODIES)
def test_honest_style_passes(name):
    source = wrapper(HONEST_BODIES[name]).replace("Tensor other)", "Any other)")
    assert render(lint(source, PROFILE)) == ""


OURS = sorted([*ROOT.glob("generate/kernels/*/*.py"), *ROOT.glob("generate/examples/*.py")])


@pytest.mark.parametrize("path", sampled(OURS, OURS[::9]), ids=lambda p: p.stem)
def test_the_library_and_the_examples_are_clean(path):
    assert render(lint(path.read_text(), PROFILE)) == ""


@pytest.mark.parametrize("path", sampled(OURS, OURS[1::27]), ids=lambda p: p.stem)
def test_they_are_clean_in_the_dialect_for_files_of_others_too(path):
    assert render(lint(path.read_text(), load_profile(ANY_FILE).with_blocks(BLOCKS))) == ""


def test_helpers_that_fan_out_end_soon():
    calls = "".join(
        f"    h@({', '.join('torch.empty(1)' if bit >> k & 1 else 'a' for k in range(6))})\n" for bit in range(64)
    )
    chain = "".join(f"\n\ndef h{i}(a, b, c, d, e, f):\n" + calls.replace("@", str(i + 1)) for i in range(12))
    source = wrapper("h0(1, 2, 3, 4, 5, 6)\nreturn self") + chain + "\n\ndef h12(a, b, c, d, e, f):\n    return a\n"
    assert "depth" in {v.rule for v in lint(source, PROFILE)}


# With block pointers, which Triton 3.6 still has; Gluon's copies have other names from 3.9 on.
GONE = {"tl.advance"} | {f"hopper.tma.async_{name}" for name in ("load", "store")}
GONE |= {f"hopper.tma.async_copy_{way}" for way in ("global_to_shared", "shared_to_global")}


@pytest.mark.parametrize("profile", [load_profile(name) for name in profile_names()], ids=lambda p: p.name)
def test_allow_lists_name_things_that_exist(profile):
    known = {"torch": torch, "triton": triton, "math": __import__("math")}
    known |= {name: importlib.import_module(module) for module, name in LANGUAGES.items()}
    for dotted in (*profile.host.functions, *profile.host.values, *profile.host.types, *profile.kernel.names):
        root, *rest = dotted.split(".")
        value = known[root]
        for part in rest:
            if dotted in GONE and not hasattr(value, part):
                break
            assert hasattr(value, part), dotted
            value = getattr(value, part)
    assert not profile.kernel.constructs - set(dir(ast))
    assert not profile.constructs.keys() - set(dir(ast))


@pytest.mark.parametrize("module", [ast, subprocess, importlib.import_module("typing"), torch.nn.functional])
def test_any_python_is_linted_without_a_crash(module):
    source = Path(module.__file__).read_text()[:90_000].rpartition("\ndef ")[0]
    assert lint(source, PROFILE)
    assert lint("import triton\n" + source.replace("\ndef ", "\n@triton.jit\ndef "), PROFILE)


def test_syntax_warnings_are_not_passed_on():
    assert lint(wrapper("return 1if self.dim() else 2"), PROFILE) == []


def test_unknown_profile_lists_the_choices():
    with pytest.raises(UserError, match="unknown lint profile 'cuda99'; choose one of: .*triton"):
        load_profile("cuda99")


def test_lint_needs_neither_torch_nor_triton():
    code = "import sys, verify.lint; sys.exit(bool({'torch', 'triton'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


SPARSE_HOST = {
    "_indices": "x = self._indices()",
    "_values": "x = self._values()",
    "sparse_coo_tensor": "x = torch.sparse_coo_tensor(self, other, self.shape, is_coalesced=True)",
}


@pytest.mark.parametrize("name", SPARSE_HOST)
def test_what_is_of_sparse_tensors_is_for_files_that_say_so(name):
    source = wrapper(f"{SPARSE_HOST[name]}\nreturn self")
    assert lint(source, PROFILE)
    declared = 'LAYOUTS = ("sparse_coo", "strided")\n'
    assert not lint(source.replace("DTYPES", f"{declared}DTYPES", 1), PROFILE)
    assert lint(source.replace("DTYPES", 'LAYOUTS = ("strided",)\nDTYPES', 1), PROFILE)


def test_sparse_files_read_no_values_one_by_one():
    source = wrapper("for k in range(3):\n    n = self.select(0, k).item()\nreturn self")
    found = lint(source.replace("DTYPES", 'LAYOUTS = ("sparse_coo",)\nDTYPES', 1), PROFILE)
    assert {v.rule for v in found} == {"readback"}
