"""One functional kernel serves the in-place, out= and foreach overloads."""

import pytest
import torch

from traces.overloads import bind, resolve
from verify.contract.derive import Plan, call, functional_base, plans

DERIVED = {
    "aten::add_.Tensor": "aten::add.Tensor",
    "aten::lerp_.Scalar": "aten::lerp.Scalar",
    "aten::zero_": "aten::zero",
    "aten::fill_.Scalar": "aten::fill.Scalar",
    "aten::add.out": "aten::add.Tensor",
    "aten::mm.out": "aten::mm",
    "aten::_foreach_sqrt": "aten::sqrt",
    "aten::_foreach_sqrt_": "aten::sqrt",
    "aten::_foreach_norm.Scalar": "aten::linalg_vector_norm",
    "aten::_foreach_addcdiv_.ScalarList": "aten::addcdiv",
    "aten::_foreach_addcmul_.Scalar": "aten::addcmul",
    "aten::_foreach_lerp_.Scalar": "aten::lerp.Scalar",
    "aten::_foreach_mul_.Tensor": "aten::mul.Tensor",
    "aten::_foreach_add_.List": "aten::add.Tensor",
    "aten::_foreach_add_.Scalar": "aten::add.Scalar",
    "aten::_foreach_div_.ScalarList": "aten::div.Scalar",
}


@pytest.mark.parametrize("overload, base", DERIVED.items(), ids=DERIVED.keys())
def test_base(overload, base):
    assert functional_base(overload) == base


@pytest.mark.parametrize("overload", ["aten::mm", "aten::native_layer_norm", "aten::_fused_adamw_"])
def test_no_derivation(overload):
    assert plans(overload) == (Plan(overload, overload),) and functional_base(overload) == overload


def best(overload):
    return next(p for p in plans(overload) if not p.direct and not p.whole)


def copy_kernel(self, src, non_blocking):
    return self.copy_(src)


def add(self, other, *, alpha, out=None):
    return torch.add(self, other, alpha=alpha, out=out)


def add_without_out(self, other, *, alpha):
    return torch.add(self, other, alpha=alpha)


@pytest.mark.parametrize("wrapper, takes_out", [(add, True), (add_without_out, False)])
def test_in_place(wrapper, takes_out):
    x, y = torch.ones(3), torch.arange(3.0)
    result = call(best("aten::add_.Tensor"), {"self": x, "other": y, "alpha": 2}, wrapper, takes_out, copy_kernel)
    assert result is x and x.tolist() == [1, 3, 5]


def test_out_is_resized_and_returned():
    x, out = torch.ones(3), torch.empty(0)
    result = call(best("aten::add.out"), {"self": x, "other": x, "out": out}, add_without_out, False, copy_kernel)
    assert result is out and out.tolist() == [2, 2, 2]


@pytest.mark.parametrize("elements", [0, 7])
@pytest.mark.parametrize(
    "overload, names",
    {
        "aten::linalg_ldl_solve.out": ("LD", "pivots", "B"),
        "aten::linalg_lu_solve.out": ("LU", "pivots", "B"),
        "aten::linalg_householder_product.out": ("input", "tau"),
        "aten::ormqr.out": ("self", "input2", "input3"),
        "aten::mm.out": ("self", "mat2"),
        "aten::nonzero.out": ("self",),
    }.items(),
)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_resized_out_has_atens_strides(overload, names, elements):
    matrix, pivots = torch.eye(3) + 1, torch.arange(1, 4, dtype=torch.int32)
    values = [pivots if n == "pivots" else matrix[0] if n in ("tau", "input2") else matrix for n in names]
    plan, dtype = best(overload), torch.int64 if "nonzero" in overload else torch.float32
    right = resolve(overload)(*values, out=torch.empty(elements, dtype=dtype))
    base = lambda *args, **kwargs: resolve(plan.base)(*args, **kwargs)  # noqa: E731
    out = call(
        plan, bind(resolve(overload), values, {"out": torch.empty(elements, dtype=dtype)}), base, False, copy_kernel
    )
    assert out.stride() == right.stride() and torch.equal(out, right)


def test_an_out_that_is_a_list_is_written_part_by_part():
    x, out = torch.arange(6.0).view(2, 3), [torch.empty(2, 2), torch.empty(0)]
    split = lambda self, sizes, dim: list(self.split(sizes, dim))  # noqa: E731
    given = {"self": x, "split_sizes": [2, 1], "dim": 1, "out": out}
    assert call(best("aten::split_with_sizes_copy.out"), given, split, False, copy_kernel) is None
    assert [t.tolist() for t in out] == [[[0, 1], [3, 4]], [[2], [5]]]


def test_foreach_in_place_returns_nothing():
    xs = [torch.ones(2), torch.ones(3)]
    given = {"self": xs, "tensor1": xs, "tensor2": [x * 2 for x in xs], "scalars": [2.0, 4.0]}
    addcdiv = lambda self, a, b, *, value: torch.addcdiv(self, a, b, value=value)  # noqa: E731
    assert call(best("aten::_foreach_addcdiv_.ScalarList"), given, addcdiv, False, copy_kernel) is None
    assert [x.tolist() for x in xs] == [[2, 2], [3, 3, 3]]


def test_foreach_in_place_by_its_functional_form():
    plan = plans("aten::_foreach_add_.List")[1]
    assert plan.whole and plan.base == "aten::_foreach_add.List" and not plan.foreach
    xs, taken = [torch.ones(2), torch.ones(3)], []

    def wrapper(self, other, *, alpha, out=None):
        taken.append(out)
        return [o.copy_(x + alpha * y) for x, y, o in zip(self, other, out, strict=True)]

    assert call(plan, {"self": xs, "other": [x * 2 for x in xs], "alpha": 3}, wrapper, True, None) is None
    assert [x.tolist() for x in xs] == [[7, 7], [7, 7, 7]] and len(taken) == 1


@pytest.mark.parametrize("overload", ["aten::_foreach_add.List", "aten::add_.Tensor", "aten::_foreach_add.List_out"])
def test_only_foreach_in_place_is_taken_whole(overload):
    assert not any(p.whole for p in plans(overload))


def test_foreach_returns_a_list():
    norm = lambda self, order, dim, keepdim, *, dtype: torch.linalg.vector_norm(self, order, dim, keepdim)  # noqa: E731
    given = {"self": [torch.ones(4), torch.zeros(2)], "ord": 2}
    assert [float(r) for r in call(best("aten::_foreach_norm.Scalar"), given, norm, False, None)] == [2, 0]


def test_without_a_copy_kernel_it_says_so():
    with pytest.raises(LookupError, match="aten::copy_"):
        call(best("aten::add_.Tensor"), {"self": torch.ones(1), "other": 1}, add_without_out, False, None)


def test_a_wrapper_with_its_own_defaults():
    """Called by name, `embedding(input, weight)` answers for aten::embedding(weight, indices)."""
    weight, indices = torch.randn(4, 2), torch.tensor([3, 0])
    given = {"weight": weight, "indices": indices}
    plan = Plan("aten::embedding", "aten::embedding")
    embedding = torch.nn.functional.embedding
    assert call(plan, given, embedding, False, None, own_defaults=True).equal(weight[indices])
    with pytest.raises((RuntimeError, TypeError)):
        call(plan, given, lambda input, weight: embedding(input, weight), False, None)
