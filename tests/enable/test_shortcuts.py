"""Shortcuts past wrappers, with launchers that really run: on host memory, by pointers."""

import ctypes
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from triton.compiler import CompiledKernel

from capture.device import compiles
from enable import library
from enable.serve import floats, shortcuts, watching
from enable.serve.entries import Entry
from enable.serve.floats import Handling, Watched, disguised, general, noted
from enable.serve.modules import load_wrapper
from enable.serve.registration import under_dispatcher
from enable.serve.server import MAX_SHORTCUTS, Server
from enable.serve.shortcuts import looked_at
from enable.serve.watching import watched
from verify.contract.derive import Plan

LAUNCHES = []


class Chain:
    def __init__(self):
        self.calls = []


ENTER, EXIT = Chain(), Chain()


def compiled(function):
    """A kernel whose launcher calls `function` with the pointers and numbers that it is given."""
    kernel = object.__new__(CompiledKernel)

    def launch(x, y, z, stream, handle, metadata, launch_metadata, enter, exit_, *arguments):
        LAUNCHES.append((stream, arguments))
        function(*[[p(a) for a in arg] if isinstance(arg, tuple) else p(arg) for arg in arguments])

    def p(value):
        return value.data_ptr() if isinstance(value, torch.Tensor) else value

    kernel._run, kernel.module = launch, None
    return kernel


class Other(torch.Tensor):
    pass


def array(pointer, n):
    return (ctypes.c_float * n).from_address(pointer)


def scale(x, out, n, factor):
    for i in range(n):
        array(out, n)[i] = array(x, n)[i] * factor


SCALE = compiled(scale)


def launch(kernel, *arguments):
    kernel.run(1, 1, 1, 0, None, None, object(), ENTER, EXIT, *arguments)


@pytest.fixture(autouse=True)
def device(request, monkeypatch):
    """As on a device whose kernels are compiled for the alignment of pointers, but where there is one."""
    LAUNCHES.clear()
    ENTER.calls.clear()
    if request.node.get_closest_marker("gpu"):
        return
    monkeypatch.setattr(watching, "_specialises_by_alignment", lambda: True)
    monkeypatch.setattr(shortcuts, "_streams", lambda: lambda index: 42)


def key_of(*call):
    return looked_at(*call).key


def doubled(x, factor=2.0):
    x, _ = torch.broadcast_tensors(x, torch.empty(()))
    out = torch.empty_like(x, dtype=torch.result_type(x, factor))
    launch(SCALE, x, out, x.numel(), factor)
    return out


def shortcut_of(wrapper, *args):
    with torch._C._AutoDispatchBelowAutograd():
        return watched(lambda: wrapper(*args), looked_at(0, args, {}).tensors)


def test_a_later_call_launches_with_its_own_pointers():
    answer, shortcut = shortcut_of(doubled, torch.arange(4.0))
    assert answer.tolist() == [0, 2, 4, 6]
    again = shortcut.run([torch.ones(4)], None)
    assert again.tolist() == [2, 2, 2, 2]
    assert again.data_ptr() != answer.data_ptr()
    assert [stream for stream, _ in LAUNCHES] == [0, 42]
    assert all(isinstance(value, int | float) for value in LAUNCHES[1][1])


@pytest.mark.parametrize(
    ("version", "has"), [("3.9.0", True), ("3.6.1+git12", True), ("3.60.0", False), ("4.0.0", False)]
)
def test_a_triton_that_was_not_tried_launches_the_ordinary_way(monkeypatch, version, has):
    monkeypatch.setattr("triton.__version__", version)
    answer, shortcut = shortcut_of(doubled, torch.arange(4.0))
    assert answer.tolist() == [0, 2, 4, 6]
    assert (shortcut is not None) == has


def test_parts_scratch_memory_tuples_and_what_is_written_in_place():
    def wrapper(x, y):
        scratch = torch.empty(2)
        launch(SCALE, x[2:], scratch, 2, 3.0)
        launch(compiled(lambda pair, out: scale(pair[0], out, 2, 10.0)), (scratch, 7, (y,)), y[1:3])
        return y, None, [torch.empty((2, 0)), 5]

    x, y = torch.arange(4.0), torch.zeros(4)
    answer, shortcut = shortcut_of(wrapper, x, y)
    assert answer[0] is y
    assert y.tolist() == [0, 60, 90, 0]
    z = torch.zeros(4)
    again = shortcut.run([torch.ones(4), z], None)
    assert again[0] is z
    assert z.tolist() == [0, 30, 30, 0]
    assert again[1] is None
    assert (again[2][0].shape, again[2][1]) == ((2, 0), 5)


def test_strides_and_dtype_of_what_is_allocated():
    def wrapper(x):
        out = torch.empty((3, 2), dtype=torch.float16).t()
        launch(SCALE, x, x, 0, 1.0)
        return out.unsqueeze(2)

    answer, shortcut = shortcut_of(wrapper, torch.zeros(1))
    again = shortcut.run([torch.zeros(1)], None)
    assert (again.shape, again.stride(), again.dtype) == (answer.shape, answer.stride(), answer.dtype)


@pytest.mark.parametrize(
    ("wrapper", "args"),
    [
        (lambda x: doubled(x, float(x.sum())), (torch.ones(2),)),
        (lambda x: doubled(x, x[0].item()), (torch.ones(2),)),
        (lambda x: x + 1, (torch.ones(2),)),
        (lambda x: x[1:], (torch.ones(2),)),
        (lambda x: (lambda out: (out, out[1:]))(torch.empty(3)), (torch.ones(2),)),
        (lambda x: torch.empty(3)[1:], (torch.ones(2),)),
        (lambda s: s, (torch.eye(2).to_sparse(),)),
        (lambda s: torch.sparse_coo_tensor(s._indices(), s._values(), (9, 9)), (torch.eye(2).to_sparse(),)),
    ],
    ids=[
        "computes",
        "reads contents",
        "ATen",
        "a view of an argument",
        "two of one memory",
        "a part of what was made",
        "a sparse argument",
        "parts of a sparse argument",
    ],
)
def test_what_has_no_shortcut(wrapper, args):
    assert shortcut_of(wrapper, *args)[1] is None


def test_sparse_tensors_are_taken_apart_and_put_together():
    def wrapper(x, rows):
        values = torch.empty_like(x._values())
        launch(SCALE, x._values(), values, 2, 3.0)
        kept = torch.sparse_coo_tensor(x._indices(), values, x.shape, is_coalesced=True, check_invariants=False)
        return kept, torch.sparse_coo_tensor(rows[1:].unsqueeze(0), torch.empty(2), (4,))

    def arguments(*diagonal):
        return torch.diag(torch.tensor(diagonal)).to_sparse(), torch.tensor([7, 2, 3])

    first, second = arguments(1.0, 2.0), arguments(5.0, 6.0)
    answer, shortcut = shortcut_of(wrapper, *first)
    assert answer[0].to_dense().tolist() == [[3, 0], [0, 6]]
    key, _, tensors, _ = looked_at(0, second, {})
    assert key == key_of(0, first, {})
    kept, rows = shortcut.run(tensors, None)
    assert kept.to_dense().tolist() == [[15, 0], [0, 18]]
    assert kept.is_coalesced()
    assert not rows.is_coalesced()
    assert rows._indices().tolist() == [[2, 3]]
    assert rows._indices().data_ptr() == second[1][1:].data_ptr()


def test_arguments_of_one_memory_that_are_taken_apart():
    def wrapper(x, y):
        launch(SCALE, x[1:], y, 1, 1.0)
        return y

    x = torch.zeros(4)
    assert shortcut_of(wrapper, x, x[2:])[1] is None
    assert shortcut_of(wrapper, x, torch.zeros(4))[1] is not None
    assert shortcut_of(lambda x, y: launch(SCALE, x, y, 1, 1.0), x, x[2:])[1] is not None


def test_what_is_empty_and_lies_in_what_is_not_has_no_pointer():
    def wrapper(x):
        launch(SCALE, x.expand(0, 2), x, 0, 1.0)
        return x

    assert shortcut_of(wrapper, torch.ones(2))[1] is None
    assert shortcut_of(lambda x: launch(SCALE, x, torch.empty(0), 0, 1.0), torch.ones(0))[1] is not None


def test_descriptors_of_tensors_are_no_constants():
    from triton.tools.tensor_descriptor import TensorDescriptor

    x = torch.zeros(4, 4)
    quiet = compiled(lambda *a: None)
    assert shortcut_of(lambda x: launch(quiet, TensorDescriptor.from_tensor(x, [4, 4])), x)[1] is None


def test_a_wrapper_may_call_what_another_one_serves():
    def outer(x):
        return shortcut_of(doubled, x)[0]

    assert shortcut_of(outer, torch.ones(2))[0].tolist() == [2, 2]


def test_another_alignment_or_a_profiler_takes_the_long_way():
    _, shortcut = shortcut_of(doubled, torch.zeros(4))
    assert shortcut.run([torch.zeros(5)[1:]], None) is shortcuts.MISS
    ENTER.calls.append(print)
    assert shortcut.run([torch.zeros(4)], None) is shortcuts.MISS
    assert len(LAUNCHES) == 1


def test_a_kernel_that_tunes_itself_has_no_shortcut():
    from triton.runtime.autotuner import Autotuner

    class Tuner(Autotuner):
        def __init__(self):
            self.configs, self.fn = [], None

    def wrapper(x):
        with pytest.raises(AttributeError):
            Tuner().run(x, grid=(1,))
        return doubled(x)

    assert shortcut_of(wrapper, torch.zeros(2))[1] is None


WRAPPERS = {
    "handed on": "doubled(self, other)",
    "converted": "doubled(self, number_argument(other))",
    "asked": "doubled(self, other if other < 10 else other + 0.5)",
    "asked of its absolute value": "doubled(self, other) if abs(other) <= 10 else doubled(self, other + 0.5)",
    "asked whether it is 0": "doubled(self, other if other else other + 0.5)",
    "asked whether it is one of these": "doubled(self, other + 0.5 if other in (0, 12) else other)",
    "computed with": "doubled(self, other + 0)",
    "made another": "doubled(self, float(other))",
    "made a key": "doubled(self, {other: other}[other])",
    "taken apart": "doubled(self, other.real)",
    "compared with itself": "doubled(self, other if other == other else 0.0)",
    "given to math": "doubled(self, math.ldexp(*math.frexp(other)))",
    "asked for its sign": "doubled(self, other if math.copysign(1.0, other) > 0 else 0.0)",
    "summed": "doubled(self, math.fsum([other]))",
    "multiplied by a product": "doubled(self, math.prod([1.0], start=other))",
    "printed": "doubled(self, other if str(other) else 0.0)",
}
SOURCE = """
import math
from tests_shortcuts import doubled, calls
def number_argument(value):
    return float(value) if abs(value) < 3e38 or value != value else value * 2
def wrapper(self, other):
    calls.append(float.__float__(other))
    return {}
"""


@pytest.fixture
def server_of(tmp_path, monkeypatch):
    """Makes a kernel for mul.Scalar of a wrapper's answer, as on a device; the numbers that it was called with."""
    import sys
    import types

    calls = []
    module = types.ModuleType("tests_shortcuts")
    module.doubled, module.calls = doubled, calls
    monkeypatch.setitem(sys.modules, "tests_shortcuts", module)
    floats = frozenset({"float32"})
    overload = "aten::mul.Scalar"

    def made(answer):
        path = Path(tmp_path / "mul.py")
        path.write_text(SOURCE.format(answer))
        entry = Entry(Plan(overload, overload), path, False, None, "mul.py", floats, floats)
        server = Server({overload: entry}.get, "cpu")
        server._compiled = True
        return lambda x, number: server.find(torch.ops.aten.mul.Scalar, (x, number), {})(), calls

    return made


@pytest.mark.parametrize("answer", [WRAPPERS["handed on"], WRAPPERS["converted"]])
def test_calls_that_differ_in_floats_share_a_shortcut(server_of, answer):
    mul, calls = server_of(answer)
    numbers = [2.0, 3.0, 2.0, -4.5, 1e-30, 0.0, 3.0]
    for number in numbers:
        assert mul(torch.ones(2), number).tolist() == pytest.approx([number, number])
    assert calls == [2.0, 3.0]
    assert mul(torch.ones(2), float("inf")).tolist() == [float("inf")] * 2
    assert calls == [2.0, 3.0, float("inf")]


@pytest.mark.parametrize(
    ("wrapper", "numbers", "called"),
    [
        ("asked", [2.0, 3.0, 12.0, 4.0, 10.0], [2.0, 3.0, 12.0, 10.0]),
        ("asked of its absolute value", [2.0, 3.0, -12.0, -4.0, 10.0], [2.0, 3.0, -12.0]),
        ("asked whether it is 0", [2.0, 3.0, 0.0, -0.0, -4.0], [2.0, 3.0, 0.0, -0.0]),
        ("asked whether it is one of these", [2.0, 3.0, 12.0, 0.0, 4.0], [2.0, 3.0, 12.0, 0.0]),
    ],
)
def test_floats_of_another_answer_take_the_wrapper(server_of, wrapper, numbers, called):
    mul, calls = server_of(WRAPPERS[wrapper])
    other = {12.0: 12.5, -12.0: -11.5, 10.0: 10.5 if wrapper == "asked" else 10.0, 0.0: 0.5}
    for number in numbers:
        assert mul(torch.ones(2), number).tolist() == [other.get(number, number)] * 2
    assert calls == called


@pytest.mark.parametrize("wrapper", list(WRAPPERS)[6:])
def test_floats_that_are_made_others_have_shortcuts_of_their_own(server_of, wrapper):
    mul, calls = server_of(WRAPPERS[wrapper])
    for number in (2.0, 3.0, 4.0, 2.0, 3.0):
        assert mul(torch.ones(2), number).tolist() == [number, number]
    assert calls == [2.0, 3.0, 4.0]


def test_floats_that_never_return_take_the_wrapper_and_no_memory(server_of):
    mul, calls = server_of(WRAPPERS["computed with"])
    numbers = [2.0 + n for n in range(2 * MAX_SHORTCUTS)]
    for number in numbers * 2:
        assert mul(torch.ones(2), number).tolist() == [number, number]
    assert calls == numbers + numbers[MAX_SHORTCUTS:]


def test_what_a_generator_counts_is_handed_on_and_never_repeated(tmp_path, monkeypatch):
    """A kernel that adds its key and its number, both as launches take integers."""
    given = []

    def adding(x, philox):
        given.append(philox)
        out = torch.empty_like(x)
        launch(added, x, out, x.numel(), *[disguised(n) for n in philox])
        return out

    added = compiled(lambda x, out, n, seed, number: write(out, n, disguised(seed) + disguised(number)))
    monkeypatch.setattr("builtins.adding", adding, raising=False)
    drawn = iter([(7, 1), (7, 2), (7, 5), (7, 9), (8, 1), (8, 2), (8, 3), (7, 11), (9, 1), (9, 1), (9, 2), (9, 3)])
    monkeypatch.setattr("enable.serve.server.draw", lambda *_: next(drawn))
    path = Path(tmp_path / "draws.py")
    path.write_text("def wrapper(self, *, generator=None, philox):\n    return adding(self, philox)\n")
    overload = "aten::bernoulli"
    entry = Entry(Plan(overload, overload), path, False, None, "d.py", *[frozenset({"float32"})] * 2, draws=True)
    server = Server({overload: entry}.get, "cpu")
    server._compiled = True
    answers = [server.answer(torch.ops.aten.bernoulli.default, (torch.ones(2),), {})[0].item() for _ in range(12)]
    assert answers == [8, 9, 12, 16, 9, 10, 11, 18, 10, 10, 11, 12]
    assert given == [(7, 1), (7, 2), (8, 1), (8, 2), (9, 1), (9, 1), (9, 2)]  # what was drawn twice is no rule


def test_integers_are_disguised_as_the_blocks_do():
    entry = library.select(["aten::bernoulli"], unverified=True, device="cpu").entries["aten::bernoulli"]
    number_argument = load_wrapper(entry.kernel, entry.texts[entry.kernel]).__globals__[floats.ESCAPE]
    assert [number_argument(n, torch.int64) for n in (0, 5, -(1 << 63))] == [disguised(n) for n in (0, 5, -(1 << 63))]


def write(pointer, n, value):
    array(pointer, n)[:] = [value] * n


def of_two(x, factors, y):
    out = torch.empty_like(x)
    launch(compiled_pair, x, (factors, 7), y, out)
    return out


compiled_pair = compiled(lambda x, pair, y, out: scale(x, out, 2, pair[0][0] * pair[0][1] * y))


def watched_with(wrapper, *args):
    looked, notes = looked_at(0, args, {}), Handling()
    given, _ = noted(args, {}, notes)
    with torch._C._AutoDispatchBelowAutograd():
        _, shortcut = watched(lambda: wrapper(*given), looked.tensors)
    return Watched(shortcut, looked.floats, notes)


def test_floats_that_were_alike_have_to_be_and_those_that_did_not_change_too():
    x = torch.ones(2)
    found = general(watched_with(of_two, x, (2.0, 3.0), 5.0), watched_with(of_two, x, (4.0, 7.0), 5.0))
    assert found.shortcut.run([x], None, (1.0, 9.0, 5.0)).tolist() == [45, 45]
    assert found.fits((1.0, 9.0, 5.0)) and not found.fits((1.0, 9.0, 6.0))
    same = general(watched_with(of_two, x, (2.0, 2.0), 5.0), watched_with(of_two, x, (4.0, 4.0), 5.0))
    assert same.shortcut.run([x], None, (3.0, 3.0, 5.0)).tolist() == [45, 45]
    assert same.fits((3.0, 3.0, 5.0)) and not same.fits((3.0, 4.0, 5.0))
    assert not same.fits((float("nan"), float("nan"), 5.0))


def test_a_float_that_is_computed_with_has_to_stay_as_it_is():
    def wrapper(x, kept, factor):
        return doubled(x, factor) if kept * 2 > 1 else x

    x = torch.ones(2)
    found = general(watched_with(wrapper, x, 2.0, 3.0), watched_with(wrapper, x, 2.0, 4.0))
    assert found.fits((2.0, 9.0)) and not found.fits((1.0, 9.0))
    assert general(watched_with(wrapper, x, 2.0, 3.0), watched_with(wrapper, x, 3.0, 4.0)) is None


def test_what_differs_in_more_than_floats_is_not_of_all():
    def sized(x, factor):
        out = torch.empty(int(float.__float__(factor)))
        launch(SCALE, x, out, 1, factor)
        return out

    def counted(x, factor):
        out = torch.empty_like(x)
        launch(SCALE, x, out, int(float.__float__(factor)), 1.0)
        return out

    def other(x, factor):
        out = torch.empty_like(x)
        launch(SCALE if factor > 2 else compiled(scale), x, out, 1, factor)
        return out

    def twice(x, factor):
        for _ in range(int(float.__float__(factor))):
            launch(SCALE, x, x, 1, factor)
        return x

    x = torch.ones(4)
    for wrapper in (sized, counted, other, twice):
        assert general(watched_with(wrapper, x, 2.0), watched_with(wrapper, x, 3.0)) is None
    assert general(watched_with(doubled, x, 2.0), watched_with(doubled, x, 3.0)) is not None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.skipif(not compiles(), reason="needs kernels compiled: pytest -m gpu, without TRITON_INTERPRET")
def test_calls_on_a_device_go_by_shortcuts_and_are_right():
    overloads = [
        "aten::mm",
        "aten::mul_.Tensor",
        "aten::add.Tensor",
        "aten::native_layer_norm",
        "aten::_foreach_add_.List",
    ]
    entries = library.select(overloads, unverified=True, device="cuda").entries
    server = Server(entries.get, "cuda")
    a, b = (torch.randn(2, 65, 64, device="cuda") for _ in range(2))
    with ExitStack() as stack:
        stack.callback(under_dispatcher(server, "cuda", entries, {}).undo)
        for _ in range(3):
            a, b = a.clone(), b.clone()
            for x, y in ((a, b), (a[1:], b[:1]), (a.view(-1)[1:8193].view(64, 128), b.view(-1)[:8192].view(64, 128))):
                want = x.cpu() + y.cpu() * 2
                torch.testing.assert_close(torch.add(x, y, alpha=2).cpu(), want)
                normal = torch.nn.functional.layer_norm(x.cpu(), x.shape[-1:])
                torch.testing.assert_close(torch.nn.functional.layer_norm(x, x.shape[-1:]).cpu(), normal)
            rows, columns = a[0].cpu().double(), b[0].cpu().double().t()
            off = (a[0] @ b[0].t()).cpu() - rows @ columns
            assert (off.abs() <= 1e-6 * (rows.abs() @ columns.abs())).all()
            want = [a.cpu() + b.cpu(), b.cpu() + b.cpu()]
            torch._foreach_add_([a, b], [b.clone(), b.clone()])  # ATen may read b after it is written
            torch.testing.assert_close([a.cpu(), b.cpu()], want)
            want = a.cpu() * b.cpu()
            torch.testing.assert_close(a.mul_(b).cpu(), want)
    found = server._ready.values()
    assert len(found) >= len(overloads)
    assert all(found)


def test_the_default_dtype_is_part_of_the_key():
    narrow = key_of(0, (torch.ones(1), 2.0), {})
    try:
        torch.set_default_dtype(torch.float64)
        assert key_of(0, (torch.ones(1), 2.0), {}) != narrow
    finally:
        torch.set_default_dtype(torch.float32)
    assert key_of(0, (torch.zeros(1), 2.0), {}) == narrow


@pytest.mark.parametrize(("a", "b"), [(0.0, -0.0), (True, 1), (1.5, complex(1.5)), (True, False), (0.0, 0), (2.0, 2)])
def test_numbers_that_are_equal_and_not_the_same(a, b):
    assert key_of(0, (a,), {}) != key_of(0, (b,), {})


X, Y = torch.zeros(2, 2), torch.zeros(2, 2)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((X, Y), (X, X)),
        ((X, Y, Y), (X, Y, torch.zeros(2, 2))),
        ((X, Y, Y), (X, Y, X)),
        (([X, Y], [Y]), ([X], [Y, Y])),
        ((X,), (X.t(),)),
        ((X,), (X.to_sparse(),)),
        ((X.to_sparse(),), (torch.sparse_coo_tensor([[0], [1]], [0.0], (2, 2)),)),
        ((X,), (X.double(),)),
        ((X,), (X.to("meta"),)),
        ((X, [1, 2]), (X, [2, 1])),
        ((X, None), (X, 0)),
        ((X, torch.int32), (X, torch.int64)),
    ],
)
def test_calls_of_different_kinds(a, b):
    assert key_of(0, a, {}) != key_of(0, b, {})
    assert key_of(0, a, {}) == key_of(0, a, {}) != key_of(1, a, {})
    assert key_of(0, (), {"p": a[-1]}) != key_of(0, (), {"q": a[-1]})


@pytest.mark.parametrize(
    "value",
    [torch.Generator(), X.as_subclass(Other), object()],
    ids=["a generator", "a subclass", "an object"],
)
def test_what_has_no_key(value):
    assert key_of(0, (X, value), {}) is key_of(0, ([value],), {}) is None


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_other_layouts_have_no_key():
    assert key_of(0, (torch.nested.nested_tensor([X, Y]),), {}) is key_of(0, (X.to_sparse_csr(),), {}) is None


def test_two_arguments_that_are_one_tensor_are_no_rule():
    def wrapper(x, y):
        out = torch.empty_like(x)
        launch(compiled(lambda x, y, out: [add(x, y, out, i) for i in range(2)]), x, y, out)
        return out

    def add(x, y, out, i):
        array(out, 2)[i] = array(x, 2)[i] + array(y, 2)[i]

    x, y, z = (torch.full((2,), n) for n in (1.0, 10.0, 100.0))
    made = {}
    for pair, total in (((x, x), 2), ((x, y), 11), ((y, x), 11), ((z, z), 200), ((z, x), 101)):
        key, _, tensors, _ = looked_at(0, pair, {})
        if key in made:
            answer = made[key].run(tensors, None)
        else:
            answer, made[key] = shortcut_of(wrapper, *pair)
        assert answer.tolist() == [total, total]
    assert len(made) == 2


def test_constants_that_a_launch_is_known_by():
    """Functions of both languages may be told to a kernel; what a later call may change unseen may not."""
    import triton
    import triton.experimental.gluon as gluon

    follower = watching._Follower([], False)
    assert follower._position((triton.jit(doubled_in_a_kernel), gluon.jit(doubled_in_a_kernel), 64, None)) is None
    with pytest.raises(watching._Unclear):
        follower._position((64, [64]))


def doubled_in_a_kernel(x):
    return x + x
