"""Sparse tensors as arguments and results: what kernels of the library make of them, and what the judge refuses."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from shared import packaged, sampled

from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

KERNELS = Path(__file__).parents[2] / "generate" / "kernels"
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")


def sparse(shape, dims, nnz, dtype=torch.float32, layout=None):
    """An uncoalesced tensor of `dims` sparse dimensions, with several entries at one place. layout: of the parts."""
    generator = torch.Generator().manual_seed(nnz)
    indices = torch.empty(dims, nnz, dtype=torch.int64)
    for row, n in zip(indices, shape, strict=False):
        row.random_(n, generator=generator)
    values = torch.randn(nnz, *shape[dims:], generator=generator)
    values = (values * 5 if dtype in (torch.int16, torch.int64, torch.bool) else values).to(dtype)
    if layout == "transposed":
        indices, values = indices.t().contiguous().t(), values.movedim(0, -1).contiguous().movedim(-1, 0)
    if layout == "expanded":
        values = values[:1].expand(values.shape)
    return torch.sparse_coo_tensor(indices, values, shape)._coalesced_(False)


GIVEN = {
    "rows": lambda: sparse((9, 3), 1, 20),
    "many of a few rows": lambda: sparse((3, 17), 1, 700),
    "many rows": lambda: sparse((70_000, 2), 1, 300),
    "half": lambda: sparse((9, 5), 1, 40, torch.float16),
    "bfloat16": lambda: sparse((9, 5), 1, 40, torch.bfloat16),
    "integers": lambda: sparse((9, 5), 1, 40, torch.int64),
    "short integers": lambda: sparse((9, 5), 1, 40, torch.int16),
    "bools": lambda: sparse((9, 5), 1, 40, torch.bool),
    "two sparse dimensions": lambda: sparse((4, 3, 2), 2, 30),
    "two dense dimensions": lambda: sparse((4, 3, 2), 1, 30),
    "all sparse": lambda: sparse((4, 3), 2, 30),
    "all dense": lambda: sparse((4, 3), 0, 3),
    "transposed": lambda: sparse((4, 3, 2), 2, 30, layout="transposed"),
    "expanded": lambda: sparse((5, 7), 1, 30, layout="expanded"),
    "one entry": lambda: sparse((5, 7), 1, 1, layout="transposed"),
    "no entry": lambda: sparse((5, 7), 1, 0),
    "no columns": lambda: sparse((5, 0), 1, 4),
    "coalesced": lambda: sparse((9, 3), 1, 20).coalesce(),
    "one row": lambda: sparse((1, 3), 1, 600),
    "NaN": lambda: sparse((9, 3), 1, 4) * float("nan"),
}
DOUBLE = lambda: sparse((9, 5), 1, 40, torch.float64)  # noqa: E731


def some(*names):
    return pytest.mark.parametrize("name", sampled(GIVEN, names))


# Of each dimension, layout and dtype some; all of them are coalesced, added, cloned or taken as a mask.
COALESCED = ("many of a few rows", "many rows", "integers", "bools", "two sparse dimensions", "all dense", "transposed")
CLONED = ("rows", "bfloat16", "bools", "two sparse dimensions", "all dense", "transposed", "no entry", "coalesced")
MASKS = ("half", "integers", "all sparse", "two dense dimensions", "all dense", "expanded", "one entry", "no columns")
TERMS = ("many of a few rows", "many rows", "half", "integers", "short integers", "bools", "two sparse dimensions")
TERMS += ("two dense dimensions", "all dense", "transposed", "expanded", "no entry", "coalesced", "NaN")


def dense(like, dtype=None):
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(like.shape, generator=generator) * 4).to(dtype or like.dtype)


def verdict_of(judge, overload, source=None, **arguments):
    """On a case that is run several times. source: of the kernel, else the library's."""
    case = case_of_values(overload, **arguments)
    if source is None:
        match = packaged().match(overload)
        job = Job(match.plan, match.kernel, (case,), match.copy, repeats=1)
    else:
        job = Job(Plan(overload, overload), KernelFile.parse(source, Path("bad.py")), (case,), repeats=1)
    return judge.judge([job])[overload, case.id]


def assert_passes(judge, overload, **arguments):
    found = verdict_of(judge, overload, **arguments)
    assert found.outcome is Outcome.PASS, found
    assert ("sparse_coo" in found.dtypes) == any(v.is_sparse for v in arguments.values() if isinstance(v, torch.Tensor))


# ---- the library's kernels ------------------------------------------------------------------------------------------


@some(*COALESCED, "bfloat16", "one entry", "no entry", "one row", "NaN")
def test_coalesce(judge, name):
    given = GIVEN[name]()
    if not given.is_coalesced():
        assert_passes(judge, "aten::_coalesce", self=given)


def test_coalesce_of_doubles(judge):
    assert_passes(judge, "aten::_coalesce", self=DOUBLE())


@some(*CLONED)
def test_clone(judge, name):
    assert_passes(judge, "aten::clone", self=GIVEN[name]())


@some(*MASKS, "coalesced")
def test_sparse_mask(judge, name):
    mask = GIVEN[name]()
    assert_passes(judge, "aten::sparse_mask", self=dense(mask), mask=mask)


def test_sparse_mask_of_another_layout_and_dtype(judge):
    mask = GIVEN["two sparse dimensions"]()
    x = dense(mask, torch.float16).permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert_passes(judge, "aten::sparse_mask", self=x, mask=mask)


ADDED = list(itertools.product(GIVEN, ("aten::add.Tensor", "aten::add_.Tensor")))
IN_CI = [row for i, row in enumerate(ADDED) if i % 4 in (0, 3) and row[0] in TERMS]


@pytest.mark.parametrize(("name", "overload"), sampled(ADDED, IN_CI))
def test_add(judge, name, overload):
    other = GIVEN[name]()
    alpha = -0.37 if other.is_floating_point() else 1 if other.dtype is torch.bool else 3
    assert_passes(judge, overload, self=dense(other), other=other, alpha=alpha)


@pytest.mark.parametrize("dtypes", ["float16 float32", "float32 float16", "float32 int64"])
def test_add_of_two_dtypes(judge, dtypes):
    one, two = (getattr(torch, name) for name in dtypes.split())
    other = sparse((9, 5), 1, 40, two)
    for overload in ("aten::add.Tensor", "aten::add_.Tensor"):
        assert_passes(judge, overload, self=dense(other, one), other=other, alpha=2)


def test_add_to_a_transposed_tensor(judge):
    other = GIVEN["two sparse dimensions"]()
    x = dense(other).permute(2, 0, 1).contiguous().permute(1, 2, 0)
    for overload in ("aten::add.Tensor", "aten::add_.Tensor"):
        assert_passes(judge, overload, self=x.clone(), other=other)


def test_sums_that_cancel(judge):
    """Thousands of terms of a row whose sum is far smaller than they are."""
    values = torch.randn(4000, 4, generator=torch.Generator().manual_seed(0))
    values = torch.cat([values, -values + 1e-3])
    other = torch.sparse_coo_tensor(torch.zeros(1, 8000, dtype=torch.int64), values, (2, 4))
    assert_passes(judge, "aten::add_.Tensor", self=torch.zeros(2, 4), other=other, alpha=-0.5)
    assert_passes(judge, "aten::_coalesce", self=other)


# ---- the judge -----------------------------------------------------------------------------------------------------

HEAD = '''"""{schema}

.
"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("{overload}",)
DTYPES = ("float32",)
LAYOUTS = ("sparse_coo", "strided")


@triton.jit
def kernel_copy(x_ptr, out_ptr, n, shift, ADD: tl.constexpr):
    i = tl.arange(0, 1024)
    tl.store(out_ptr + i + shift, tl.load(x_ptr + i, mask=i < n) + ADD, mask=i < n)


def copied(x, add=0, shift=0, out=None):
    out = torch.empty_like(x) if out is None else out
    kernel_copy[(1,)](x, out, x.numel(), shift, ADD=add)
    return out


def made(indices, values, size, coalesced=False):
    return torch.sparse_coo_tensor(indices, values, size, is_coalesced=coalesced, check_invariants=False)


def wrapper({parameters}):
    indices, values = {sparse}._indices(), {sparse}._values()
'''
CLONE = {"overload": "aten::clone", "parameters": "self, *, memory_format=None", "sparse": "self"}
ADD = {"overload": "aten::add_.Tensor", "parameters": "self, other, alpha=1", "sparse": "other"}


def source_of(fields, body):
    schema = str(
        getattr(torch.ops.aten, fields["overload"][6:].split(".")[0])._schemas[fields["overload"][6:].partition(".")[2]]
    )
    return HEAD.format(schema=schema, **fields) + "".join(f"    {line}\n" for line in body.split("\n"))


HONEST = "return made(copied(indices), copied(values), self.shape, self.is_coalesced())"
BAD_CLONES = {
    "flag is not kept": ("return made(copied(indices), copied(values), self.shape, True)", Outcome.WRONG, "coalesced"),
    "other size": ("return made(copied(indices), copied(values), (10, 3))", Outcome.WRONG, "returned sparse_coo"),
    "dense": ("return copied(values)", Outcome.WRONG, "returned tensor, expected sparse_coo"),
    "wrong indices": ("return made(copied(indices, 1), copied(values), self.shape)", Outcome.WRONG, "return.indices"),
    "wrong values": ("return made(copied(indices), copied(values, 1), self.shape)", Outcome.WRONG, "return.values"),
    "fewer entries": (
        "return made(copied(indices).narrow(1, 0, 9), copied(values).narrow(0, 0, 9), self.shape)",
        Outcome.WRONG,
        "shape",
    ),
    "values are the argument's": ("return made(copied(indices), values, self.shape)", Outcome.WRONG, "share memory"),
    "indices are the argument's": ("return made(indices, copied(values), self.shape)", Outcome.WRONG, "share memory"),
    "the argument itself": ("copied(values)\nreturn self", Outcome.WRONG, "share memory"),
    "entries in another order": (
        "out = torch.empty_like(indices)\n"
        "for k in range(20):\n"
        "    copied(indices.narrow(1, k, 1), out=out.narrow(1, 19 - k, 1))\n"
        "return made(out, copied(values), self.shape)",
        Outcome.WRONG,
        "return.indices",
    ),
    "marks its argument": (
        "self._coalesced_(True)\nreturn made(copied(indices), copied(values), self.shape)",
        Outcome.WRONG,
        "argument self is sparse_coo[9, 3], coalesced after the call",
    ),
    "writes its argument's values": (
        "kernel_copy[(1,)](values, values, 60, 0, ADD=1)\n" + HONEST,
        Outcome.WRONG,
        "self.values",
    ),
    "writes them back": (
        "kernel_copy[(1,)](values, values, 60, 0, ADD=1)\nkernel_copy[(1,)](values, values, 60, 0, ADD=-1)\n"
        "kernel_copy[(1,)](indices, indices, 20, 0, ADD=0)\n" + HONEST,
        Outcome.WRONG,
        "self",
    ),
    "writes behind its argument": (
        "kernel_copy[(1,)](values, values, 61, 0, ADD=0)\n" + HONEST, Outcome.WRONG, "kernel_copy",
    ),
    "reads behind its argument": (
        "kernel_copy[(1,)](indices, torch.empty(99, dtype=torch.int64), 21, 0, ADD=0)\n" + HONEST,
        Outcome.WRONG,
        "kernel_copy",
    ),
    "memory that nobody wrote": (
        "return made(copied(indices), torch.empty_like(values), self.shape)", Outcome.WRONG, "return.values",
    ),
    "clones": ("return self.clone()", Outcome.CHEAT, "aten::clone"),
    "clones the values": ("return made(copied(indices), values.clone(), self.shape)", Outcome.CHEAT, "aten::clone"),
    "coalesces": ("self.coalesce()\n" + HONEST, Outcome.CHEAT, "aten::_coalesce"),
    "becomes dense": ("self.to_dense()\n" + HONEST, Outcome.CHEAT, "aten::"),

    "checks invariants": (
        "torch.sparse_coo_tensor(indices, values, self.shape, check_invariants=True)\n" + HONEST,
        Outcome.CHEAT,
        "aten::",
    ),
    "converts the values": (
        "torch.sparse_coo_tensor(indices, values, self.shape, dtype=torch.float16)\n" + HONEST,
        Outcome.CHEAT,
        "aten::",
    ),
    "reads values back": ("values.select(0, 0).select(0, 0).item()\n" + HONEST, Outcome.CHEAT, "numbers back"),
    "reads all indices back": (
        "for k in range(20):\n    indices.select(0, 0).select(0, k).item()\n" + HONEST,
        Outcome.CHEAT,
        "20 numbers back",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CLONES)
def test_bad_clones(judge, name):
    body, outcome, detail = BAD_CLONES[name]
    found = verdict_of(judge, "aten::clone", source_of(CLONE, body), self=sparse((9, 3), 1, 20))
    assert found.outcome is outcome and detail in found.detail, found


def test_an_honest_clone(judge):
    found = verdict_of(judge, "aten::clone", source_of(CLONE, HONEST), self=sparse((9, 3), 1, 20))
    assert found.outcome is Outcome.PASS, found


def mutant(overload, before, after):
    """The library's kernel with a fault."""
    source = packaged().match(overload).kernel.source
    assert source.count(before) == 1
    return source.replace(before, after)


ATOMIC = 'tl.atomic_add(out_ptr + offset + strided(column, shape, out_stride, False), value, mask=mask, sem="relaxed")'
PLACE = "out_ptr += offset + strided(column, shape, out_stride, False)\n    "
BAD_ADDS = {
    "alpha is ignored": ("(widen(value) * alpha)", "widen(value)"),
    "the last of equal rows wins": (ATOMIC, f"{PLACE}tl.store(out_ptr, value, mask=mask)"),
    "added without atomics": (ATOMIC, f"{PLACE}tl.store(out_ptr, tl.load(out_ptr, mask=mask) + value, mask=mask)"),
    "the dense operand is written": (
        "elementwise(identity, dense, common=out.dtype, out=out)",
        "elementwise(identity, 0, common=out.dtype, out=dense)",
    ),
    "the first column for all": ("strided(column, shape, shape_stride, False), mask", "0, mask"),
}
BAD_COALESCES = {
    "rows are not sorted": ("digit = ((key >> shift) & (DIGITS - 1))", "digit = ((key >> shift) & 0)"),
    "the last pass is left out": ("for k in range(passes):", "for k in range(passes - 1):"),
    "marked as uncoalesced": ("is_coalesced=True", "is_coalesced=False"),
    "the last row is lost": ("places.select(0, blocks).item()", "places.select(0, blocks).item() - 1"),
    "every entry is a row": ("(row != before)", "(row == row)"),
    "the first entry of each row": ("tl.arange(0, ROWS) < end", "tl.arange(0, ROWS) < i + 1"),
    "the room is the argument's": ("torch.empty(values.shape, dtype=values.dtype, device=values.device)", "values"),
}


@pytest.mark.parametrize("name", BAD_ADDS)
def test_bad_adds(judge, name):
    other = sparse((9, 3), 1, 700)
    source = mutant("aten::add.Tensor", *BAD_ADDS[name])
    found = verdict_of(judge, "aten::add.Tensor", source, self=dense(other), other=other, alpha=-0.5)
    assert found.outcome is Outcome.WRONG, found


@pytest.mark.parametrize("name", sampled(BAD_COALESCES, [*BAD_COALESCES][::2]))
def test_bad_coalesces(judge, name):
    source = mutant("aten::_coalesce", *BAD_COALESCES[name])
    found = verdict_of(judge, "aten::_coalesce", source, self=sparse((90, 3), 1, 700))
    assert found.outcome is Outcome.WRONG, found


@pytest.mark.parametrize(
    ("overload", "arguments", "missing"),
    [
        ("aten::pow.Tensor_Tensor", {"self": torch.ones(2) * 1j, "exponent": torch.ones(2)}, "complex64"),
        ("aten::pow.Tensor_Scalar", {"self": torch.ones(2), "exponent": 1j}, "complex"),
        ("aten::new_ones", {"self": torch.ones(2), "size": [2], "dtype": torch.complex64}, "complex64"),
        ("aten::rsub.Tensor", {"self": torch.ones(2).double(), "other": torch.ones(2) * 1j}, "complex64"),
    ],
)
def test_what_a_kernel_does_not_list_it_is_not_given(judge, overload, arguments, missing):
    source = packaged().match(overload).kernel.source
    found = verdict_of(judge, overload, source, **arguments)
    assert (found.outcome, found.detail) == (Outcome.SKIPPED, f"the kernel's DTYPES do not list {missing}")


def test_what_lists_complex_numbers_takes_those_of_python_too(judge):
    kernel = packaged().match("aten::mul.Scalar").kernel
    assert {"complex64", "complex", "float32"} < kernel.listed
    assert "complex" not in packaged().match("aten::pow.Tensor_Scalar").kernel.listed
    found = verdict_of(judge, "aten::mul.Scalar", kernel.source, self=torch.ones(2), other=2j)
    assert found.outcome is Outcome.PASS, found


def test_a_conjugate_bit_is_resolved_by_clone(judge):
    x = torch.complex(torch.randn(4, 5), torch.randn(4, 5)).t().conj()
    right = packaged().match("aten::clone").kernel.source
    wrong = mutant("aten::clone", "return a, b * -1.0", "return a, b * 1.0")
    assert verdict_of(judge, "aten::clone", right, self=x).outcome is Outcome.PASS
    assert verdict_of(judge, "aten::clone", wrong, self=x).outcome is Outcome.WRONG


def test_a_kernel_that_does_not_say_so_is_given_no_sparse_tensors(judge):
    source = mutant("aten::clone", 'LAYOUTS = ("sparse_coo", "strided")\n', "")
    found = verdict_of(judge, "aten::clone", source, self=sparse((9, 3), 1, 20))
    assert found.outcome is Outcome.SKIPPED and "LAYOUTS do not list sparse_coo" in found.detail
    assert verdict_of(judge, "aten::clone", source, self=torch.ones(3)).outcome is Outcome.PASS
