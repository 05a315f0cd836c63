"""Registering kernels never makes a call fail, and never changes which calls PyTorch refuses, or with which words."""

import random
import resource
import threading
import warnings
from contextlib import nullcontext

import pytest
import torch

from enable import library
from enable.serve.arguments import refusal, refusal_on_host
from enable.serve.decisions import CAST, NO_INTEGERS, OVERLAP
from enable.serve.decisions import REFUSED as REFUSAL
from enable.serve.overlap import footprint_of, overlaps
from enable.serve.server import Server
from enable.serve.shortcuts import looked_at
from generate.kernel_library import KERNELS, Library
from traces import UserError
from traces.overloads import bind, resolve

ADD_ = resolve("aten::add_.Tensor")


def elements(t):
    """The places of a tensor's elements in its memory."""
    count = t.untyped_storage().nbytes() // t.element_size()
    return torch.arange(count).as_strided(t.shape, t.stride(), t.storage_offset()).flatten().tolist()


def test_shared_memory_is_found_and_columns_of_one_matrix_share_none():
    """Compared with the places of all elements; only tensors of other strides may be taken to share memory wrongly."""
    draw = random.Random(0)
    for _ in range(4000):
        dim = draw.randint(0, 3)
        strides = [draw.choice([0, 1, 2, 3, 4, 6, 8, 12, 20]) for _ in range(dim)]
        memory = torch.zeros(400)
        shapes = [[draw.randint(0, 4) for _ in range(dim)] for _ in range(2)]
        a, b = (memory.as_strided(shape, strides, draw.randint(0, 30)) for shape in shapes)
        places = elements(a), elements(b)
        twice, meet = len(set(places[0])) < len(places[0]), bool(set(places[0]) & set(places[1]))
        same = (a.data_ptr(), a.shape, a.stride()) == (b.data_ptr(), b.shape, b.stride())
        assert overlaps(ADD_, (a, b), {}) or not (twice or (meet and not same))
        tensors, of = footprint_of(ADD_, (a, b), {})
        assert of.may_clash([t.data_ptr() for t in tensors]) or not meet or same
    x = torch.zeros(6, 8)
    for other in (x, x[:], torch.zeros(6, 8), x.double()):
        assert not overlaps(ADD_, (x, other), {})
    assert not overlaps(ADD_, (x[:, :4], x[:, 4:]), {})
    assert not overlaps(ADD_, (x[::2], x[1::2]), {})
    assert overlaps(ADD_, (x[1:], x[:-1]), {})
    assert overlaps(resolve("aten::_foreach_add_.Scalar"), ([x, x], 1), {})
    assert overlaps(resolve("aten::index_select.out"), (x, 0, torch.tensor([1])), {"out": x})


def writing(name):
    t = torch.arange(5.0)
    return {
        "an expanded out": lambda: torch.add(t, 1, out=torch.zeros(1).expand(5)),
        "an expanded self": lambda: torch.zeros(1).expand(5).add_(t),
        "an expanded destination": lambda: torch.zeros(1).expand(5).copy_(t),
        "a joined out": lambda: torch.cat([t, t], out=torch.zeros(1).expand(10)),
        "a shifted out": lambda: torch.add(t[:-1], 1, out=t[1:]),
        "an out that is read": lambda: torch.index_select(t, 0, torch.tensor([1, 0]), out=t),
        "a transposed self": lambda: (m := torch.rand(3, 3)).add_(m.t()),
    }[name]


@pytest.mark.parametrize("device", ["cpu", "sim"])
@pytest.mark.parametrize("name", ["an expanded self", "a shifted out", "an out that is read", "a transposed self"])
def test_memory_that_is_written_and_shared_is_refused_as_by_aten(name, device):
    with pytest.raises(RuntimeError, match="unsupported operation"):
        writing(name)()
    with library.use(device, unverified=True) as registration, torch.device(device):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            writing(name)()
        assert OVERLAP in {reason for reasons in registration.counts.unserved.values() for reason in reasons}


@pytest.mark.parametrize("name", ["an expanded out", "an expanded destination", "a joined out"])
def test_out_that_overlaps_itself_is_refused(name):
    with library.use("cpu", unverified=True), pytest.raises(RuntimeError, match="unsupported operation: more than one"):
        writing(name)()


def test_columns_of_one_matrix_are_served_on_sim():
    with library.use("sim", unverified=True) as registration:
        x = torch.arange(12.0).view(3, 4).to("sim")
        x[:, :2].add_(x[:, 2:])
        assert x.cpu().tolist() == [[2, 4, 2, 3], [10, 12, 6, 7], [18, 20, 10, 11]]
        assert registration.counts.served["aten::add_.Tensor"] == 1


KERNEL = '''"""aten::neg(Tensor self) -> Tensor"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32", "int64")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, -tl.load(x + at, mask=at < n), mask=at < n)


def wrapper(self):
    if self.numel() == 1:
        raise {error}("one element")
    out = torch.empty_like(self)
    kernel[(1,)](self, out, self.numel(), BLOCK=16)
    if self.numel() == 2:
        raise {error}("two elements")
    return out
'''


@pytest.fixture
def kernels(tmp_path):
    """Makes a library of `neg` that raises for one element before its launch, for two after it."""

    def made(error):
        (tmp_path / "pointwise").mkdir()
        (tmp_path / "pointwise" / "neg.py").write_text(KERNEL.format(error=error))
        return Library(tmp_path)

    return made


@pytest.mark.parametrize("error", ["RuntimeError", "ValueError", "IndexError", "NotImplementedError"])
def test_an_error_before_the_first_launch_declines_the_call(kernels, error):
    with library.use("cpu", ops=["aten::neg"], library=kernels(error), unverified=True) as registration:
        for _ in range(2):
            assert torch.neg(torch.ones(1)).tolist() == [-1]
        assert torch.neg(torch.ones(3)).tolist() == [-1] * 3
        counts = registration.counts
        assert counts.unserved["aten::neg"] == {"its wrapper takes no such arguments: one element": 2}
        assert counts.served["aten::neg"] == 1


@pytest.mark.parametrize("error", ["RuntimeError", "NotImplementedError"])
def test_an_error_after_a_launch_is_an_error_unless_it_says_that_the_kernel_takes_no_such_call(kernels, error):
    with library.use("cpu", ops=["aten::neg"], library=kernels(error), unverified=True):
        if error == "NotImplementedError":
            assert torch.neg(torch.ones(2)).tolist() == [-1, -1]
        else:
            with pytest.raises(RuntimeError, match="two elements"):
                torch.neg(torch.ones(2))


def test_on_sim_the_error_of_a_wrapper_is_raised_if_aten_has_none(kernels):
    with (
        library.use("sim", ops=["aten::neg"], library=kernels("ValueError"), unverified=True),
        pytest.raises(ValueError, match="one element"),
    ):
        torch.neg(torch.ones(1).to("sim"))


REFUSED = {
    "boundaries": lambda: torch.bucketize(torch.ones(3), torch.ones(2, 2)),
    "dtypes of two": lambda: torch.complex(torch.ones(3), torch.ones(3).double()),
    "a dilation of 0": lambda: torch.nn.functional.conv1d(torch.ones(1, 2, 5), torch.ones(2, 2, 2), dilation=0),
    "a negative beta": lambda: torch.nn.functional.smooth_l1_loss(torch.ones(2), torch.ones(2), beta=-1.0),
    "another shape": lambda: torch.zeros(3, 2).index_add(0, torch.tensor([0, 1]), torch.ones(2)),
    "another dtype": lambda: torch.zeros(3).index_add(0, torch.tensor([0, 1]), torch.ones(2).double()),
    "shapes of indices": lambda: torch.zeros(3, 4).index_put_((torch.tensor([0, 1]),), torch.ones(3)),
    "a matrix of indices": lambda: torch.zeros(3, 3).index_select(0, torch.tensor([[0]])),
    "no elements": lambda: torch.ones(2, 0).max(1),
    "sums of bools": lambda: torch.tensor([True, True]).cumsum_(0),
    "activated bools": lambda: torch.relu(torch.tensor([True])),
    "bools subtracted": lambda: torch._foreach_sub([torch.tensor([True])], [torch.tensor([True])]),
    "a factor that is a bool": lambda: torch._foreach_add([torch.ones(1)], [torch.ones(1)], alpha=True),
    "integers by floats": lambda: torch.ones(3, dtype=torch.int64).addcmul_(torch.ones(3), torch.ones(3)),
    "a mean of integers": lambda: torch.ones(3, dtype=torch.int64).lerp_(torch.ones(3, dtype=torch.int64), 0.5),
    "a complex number": lambda: torch.ones(3).fill_(1 + 2j),
    "a large number": lambda: torch.ones(3, dtype=torch.int8).fill_(300),
    "a negative power": lambda: torch.tensor([1, 2]).pow_(-1),
    "division by 0": lambda: torch.tensor([1, 2]) // 0,
    "targets of 32 bits": lambda: torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.ones(2, dtype=torch.int32)),
    "out of another dtype": lambda: torch._softmax(torch.ones(3), 0, False, out=torch.empty(3, dtype=torch.float64)),
    "an empty range": lambda: torch.ones(3).uniform_(3, -1),
    "a probability of 2": lambda: torch.ones(3).bernoulli_(2.0),
    "a dropout of 1.5": lambda: torch.native_dropout(torch.ones(3), 1.5, True),
    "too few elements": lambda: torch.zeros(4).masked_scatter(torch.ones(4).bool(), torch.ones(2)),
    "an index out of range": lambda: torch.zeros(3).gather(0, torch.tensor([7])),
}


@pytest.mark.parametrize("device", ["cpu", "sim"])
@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_aten_refuses_are_refused_with_its_words(name, device):
    with pytest.raises(Exception) as native:  # noqa: B017, PT011 - the type is compared below
        REFUSED[name]()
    with library.use(device, unverified=True), torch.device(device), pytest.raises(native.type) as served:
        REFUSED[name]()
    if name != "a dropout of 1.5":  # made of bernoulli_ by the one, by native_dropout by the other
        assert str(served.value) == str(native.value)


def test_a_refusal_for_what_tensors_contain_is_that_calls_alone():
    x = torch.arange(3.0)
    with library.use("cpu", ops=["aten::gather"], unverified=True) as registration:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="index 7 is out of bounds"):
                x.gather(0, torch.tensor([7]))
            assert x.gather(0, torch.tensor([2])).tolist() == [2]
        assert registration.counts.served["aten::gather"] == 2


FLOATS, INTEGERS, BOOLS = torch.ones(2), torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool)
SUMS = {  # by overload: calls that ATen refuses, and one that it takes
    "aten::_foreach_add.List": [([FLOATS], [FLOATS], True), ([INTEGERS], [INTEGERS], 1.5), ([FLOATS], [FLOATS], 2)],
    "aten::_foreach_add_.List": [([FLOATS], [FLOATS], True), ([INTEGERS], [INTEGERS], 1.5), ([BOOLS], [BOOLS], True)],
    "aten::_foreach_add.Tensor": [([INTEGERS, FLOATS], FLOATS[0], True), ([FLOATS], FLOATS[0], 1.5)],
    "aten::_foreach_sub.List": [([FLOATS], [FLOATS], True), ([FLOATS], [BOOLS], 1), ([FLOATS], [INTEGERS], 1)],
    "aten::_foreach_sub_.List": [([FLOATS], [FLOATS], True), ([BOOLS], [BOOLS], 1), ([FLOATS], [FLOATS], 1.5)],
    "aten::_foreach_sub.Scalar": [([BOOLS], True), ([BOOLS], 1), ([FLOATS], True), ([FLOATS], 1)],
    "aten::_foreach_sub_.ScalarList": [([FLOATS, FLOATS], [1, True]), ([FLOATS, FLOATS], [1, 2])],
    "aten::sub.Tensor": [(BOOLS, FLOATS, 1), (FLOATS, BOOLS, 1), (FLOATS, True, 1), (FLOATS, INTEGERS, 1)],
    "aten::rsub.Scalar": [(FLOATS, True, 1), (BOOLS, 1, 1), (FLOATS, 1, 1)],
}


@pytest.mark.parametrize("overload", SUMS)
def test_factors_and_bools_that_aten_refuses_in_sums_are_refused(overload):
    op, (*refused, right) = resolve(overload), SUMS[overload]
    for call in [*refused, right]:
        names = [argument.name for argument in op._schema.arguments]
        values = bind(op, (), dict(zip(names, call, strict=False)))
        args = [values.pop(argument.name) for argument in op._schema.arguments if not argument.kwarg_only]
        answers = [ask(op, tuple(args), values) for ask in (refusal, refusal_on_host)]
        assert [answer is None for answer in answers] == [call is right] * 2


def test_asking_aten_draws_and_writes_nothing():
    x, generator = torch.zeros(5), torch.Generator()
    mean, var = torch.zeros(2), torch.ones(2)
    arguments = torch.rand(4, 2), None, None, mean, var, True, 0.1, 1e-5
    states = [torch.get_rng_state(), generator.get_state()]
    assert refusal_on_host(resolve("aten::uniform_"), (x,), {}) is None
    assert refusal_on_host(resolve("aten::uniform_"), (x,), {"generator": generator}) is None
    assert refusal_on_host(resolve("aten::native_batch_norm"), arguments, {}) is None
    assert not x.any() and not mean.any() and var.tolist() == [1, 1]
    assert torch.equal(states[0], torch.get_rng_state()) and torch.equal(states[1], generator.get_state())


def test_asking_leaves_generators_and_warnings_to_other_threads():
    """Neither is put back to an earlier state, by which another thread would draw twice, or warn never again."""
    filters, drawn = list(warnings.filters), []

    def work():
        for _ in range(25):
            drawn.append(torch.rand(1, dtype=torch.float64).item())
            torch.ones(3).exp()

    with library.use("cpu", ops=["aten::rand", "aten::uniform_", "aten::exp"], unverified=True):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(drawn)) == len(drawn) == 100
    assert warnings.filters == filters


NOTHING_DRAWN = {
    "rrelu in evaluation": lambda: torch.nn.functional.rrelu(torch.tensor([-1.0, 1.0]), training=False),
    "no elements": lambda: torch.rand(0),
    "no elements of self": lambda: torch.empty(0).normal_(),
    "dropout in evaluation": lambda: torch.native_dropout(torch.ones(3), 0.5, False),
}


@pytest.mark.parametrize("name", NOTHING_DRAWN)
def test_a_call_that_draws_nothing_leaves_the_generator(name):
    before = torch.get_rng_state()
    with library.use("cpu", unverified=True) as registration:
        NOTHING_DRAWN[name]()
        assert sum(registration.counts.served.values())
    assert torch.equal(torch.get_rng_state(), before)


def test_of_a_large_storage_the_part_that_is_written_is_copied():
    large = torch.zeros(1 << 28, dtype=torch.uint8)
    row, before = large[8:16].view(2, 4).t(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal_on_host(resolve("aten::add_.Scalar"), (row, 1), {}) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 16  # KiB
    assert not row.any()
    wrong = refusal_on_host(resolve("aten::add_.Tensor"), (row, torch.ones(3)), {})
    assert "must match" in str(wrong)


def test_resizing_warns_once():
    with library.use("cpu", ops=["aten::exp.out"], unverified=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.exp(torch.ones(3), out=torch.ones(1))
    assert len([w for w in caught if "was resized" in str(w.message)]) == 1


def test_numbers_that_half_precision_cannot_hold_are_refused():
    h = torch.ones(3).half()
    for call in (lambda: torch.full((2,), 1e6, dtype=torch.half), lambda: h.masked_fill(h > 0, -1e9)):
        with library.use("cpu", unverified=True), pytest.raises(RuntimeError, match="without overflow"):
            call()


def test_on_sim_what_stays_unserved_names_what_to_do():
    with library.use("sim", unverified=True):
        x = torch.ones(4).to("sim")
        with pytest.raises(NotImplementedError, match="holds another of its elements; clone one of the tensors"):
            torch._foreach_add_([x, x], 1.0)
        with pytest.raises(NotImplementedError, match="DTYPES do not list .*enable library show aten::avg_pool3d"):
            torch.nn.functional.avg_pool3d(torch.ones(1, 1, 2, 2, 2).bfloat16().to("sim"), 2)
        with pytest.raises(NotImplementedError, match=r"takes no such arguments: KeyError\(torch.uint32\)"):
            torch.ones(2, dtype=torch.uint32, device="sim")


def test_what_the_cpu_alone_lacks_is_no_refusal():
    x = torch.ones(1, 1, 2, 2, 2)
    pool = resolve("aten::avg_pool3d")
    with pytest.raises(NotImplementedError, match="not implemented for 'BFloat16'"):
        pool(x.bfloat16(), 2)
    assert refusal_on_host(pool, (x.bfloat16(), 2), {}) is None
    assert "stride should not be zero" in str(refusal_on_host(pool, (x.bfloat16(), 0), {}))
    softmax = resolve("aten::_softmax")
    assert refusal_on_host(softmax, (x.half(), 0, True), {}) is None
    rows = torch.ones(2, 3).half(), [3], torch.ones(2, 1), torch.ones(2, 1), None, None, [True, False, False]
    backward = resolve("aten::native_layer_norm_backward")
    with pytest.raises(RuntimeError, match="expected scalar type Half but found Float"):
        backward(rows[0], *rows)
    assert refusal_on_host(backward, (rows[0], *rows), {}) is None
    assert "index 3 is out of bounds" in str(
        refusal_on_host(resolve("aten::gather"), (torch.ones(3).half(), 0, torch.tensor([3])), {})
    )
    assert refusal_on_host(resolve("aten::mm"), (torch.ones(2, 2).half(), torch.ones(2, 2)), {}) is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_of_half_precision_has_its_gradient(dtype):
    x = torch.randn(4, 8).to(dtype)
    weight = torch.ones(8, dtype=dtype)
    gradients = []
    for device in ("", "cpu", "sim"):
        with library.use(device, unverified=True) if device else nullcontext():
            y = x.to(device or "cpu").requires_grad_()
            w = weight.to(y.device)
            loss = torch.nn.functional.layer_norm(y, (8,), w)[:, 0].sum()
            gradients.append(torch.autograd.grad(loss, y)[0].cpu())
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], atol=0.05, rtol=0.02)


def test_reasons_are_counted():
    with library.use("cpu", ops=["aten::mm.out", "aten::lerp.Scalar"], unverified=True) as registration:
        with pytest.raises(RuntimeError):
            torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=torch.ones(2, 2, dtype=torch.float64))
        with pytest.raises(NotImplementedError):
            torch.lerp(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64), 0.5)
        assert registration.counts.unserved["aten::lerp.Scalar"] == {NO_INTEGERS: 1}
    with library.use("cpu", ops=["aten::cumsum.out", "aten::index_select.out"], unverified=True) as registration:
        with pytest.raises(RuntimeError):
            torch.index_select(torch.ones(2), 0, torch.tensor([0]), out=torch.ones(1, dtype=torch.float64))
        assert registration.counts.unserved["aten::index_select.out"] == {REFUSAL: 1}


def test_where_the_backends_kernels_are_not_asked_out_of_another_dtype_is_not_served():
    entries = library.select(["aten::index_select.out"], unverified=True).entries
    out = {"out": torch.ones(1, dtype=torch.float64)}
    op, args = resolve("aten::index_select.out"), (torch.ones(2), 0, torch.tensor([0]))
    assert Server(entries.get, "cpu").reason(op, args, out) == CAST


NUMBERS = {
    "two numbers": lambda: torch.add(0.5, 0.25),
    "of two kinds": lambda: torch.add(1, 0.5),
    "narrow": lambda: torch.add(2, torch.ones(3, dtype=torch.int8)),
    "quotient": lambda: torch.div(1, torch.full((3,), 4.0)),
    "of no dimension": lambda: torch.add(1.5, torch.tensor(2)),
    "half": lambda: torch.sub(2.5, torch.ones(3, dtype=torch.float16)),
}
AS_TENSORS = {
    "isin": lambda x: torch.isin(x, 2),
    "isin of": lambda x: torch.isin(2.5, x),
    "pow": lambda x: torch.pow(2, x),
    "pow of no dimension": lambda x: torch.pow(2, x[1]),
    "pow, out": lambda x: torch.pow(2, x, out=torch.empty_like(x)),
    "searchsorted": lambda x: torch.searchsorted(x, 2),
    "bucketize": lambda x: torch.bucketize(2, x),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_in_the_first_place_is_served(name):
    right = NUMBERS[name]()
    with library.use("cpu", unverified=True) as registration:
        answer = NUMBERS[name]()
        served, unserved = registration.counts.served, registration.counts.unserved
    assert answer.dtype == right.dtype and answer.tolist() == right.tolist()
    assert served.keys() & {"aten::add.Tensor", "aten::div.Tensor", "aten::sub.Tensor"}
    assert not any(unserved.values())


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8])
@pytest.mark.parametrize("name", AS_TENSORS)
def test_a_number_becomes_a_tensor_where_atens_kernel_would_mark_one_on_the_gpu(name, dtype):
    x = torch.arange(3, dtype=dtype)
    right = AS_TENSORS[name](x)
    of_tensors = "isin.Tensor_Tensor pow.Tensor_Tensor pow.Tensor_Tensor_out searchsorted.Tensor bucketize.Tensor"
    ops = [f"aten::{overload}" for overload in of_tensors.split()]
    with library.use("cpu", ops=ops, unverified=True) as registration:
        answer = AS_TENSORS[name](x)
        served = registration.counts.served
    assert answer.dtype == right.dtype and answer.tolist() == right.tolist()
    assert sum(served.values()) == 1
    with library.use("sim", ops=ops, unverified=True):
        answer = AS_TENSORS[name](x.to("sim"))
    assert answer.dtype == right.dtype and answer.tolist() == right.tolist()


def test_a_zero_tensor_has_no_memory_to_read():
    zero = torch._efficientzerotensor([2])
    with library.use("cpu", unverified=True):
        assert torch.ones(2).copy_(zero).tolist() == zero.clone().tolist() == [0, 0]
        assert (torch.dot(zero, torch.ones(2)) + 0).item() == 0
        assert torch.ops.aten._efficientzerotensor.out([2], out=torch.empty(0)).tolist() == [0, 0]


def test_lazy_bits_are_part_of_a_shortcuts_key():
    x = torch.randn(2, 2, dtype=torch.complex64)
    alike = [x, x.conj(), x.imag, x.conj().imag]
    keys = {looked_at(1, (t,), {}).key for t in alike} | {looked_at(1, (torch._neg_view(x.real),), {}).key}
    assert len(keys) == 4  # the last two are negatives in the same places
    assert looked_at(1, (torch._efficientzerotensor([2, 2]),), {}).key is None


@pytest.mark.parametrize("overload", ["aten::silu_backward", "aten::mish_backward"])
def test_a_backward_that_the_backend_has_whole_is_served(overload):
    x = torch.linspace(-2, 2, 5, requires_grad=True)
    activation = getattr(torch.nn.functional, overload.removeprefix("aten::").removesuffix("_backward"))
    right = torch.autograd.grad(activation(x).sum(), x)[0]
    for device in ("cpu", "sim"):
        with library.use(device, unverified=True) as registration:
            y = x.detach().to(device).requires_grad_()
            gradient = torch.autograd.grad(activation(y).sum(), y)[0]
            assert registration.counts.served[overload] == 1
        torch.testing.assert_close(gradient.cpu(), right)


def test_composites_without_a_kernel_of_the_backend_are_left_out(tmp_path):
    (tmp_path / "pointwise").mkdir()
    source = (KERNELS / "pointwise/exp.py").read_text().replace('("aten::exp",)', '("aten::matmul",)')
    (tmp_path / "pointwise" / "matmul.py").write_text(source)
    for device in ("cpu", "sim"):
        with pytest.raises(UserError, match="^aten::matmul: PyTorch makes it of other operators"):
            library.register(device, ops=["aten::matmul"], library=Library(tmp_path), unverified=True)
