"""The native way to launch: on the CPU its keys, memory and answers, on a GPU the launches, too."""

import itertools
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import astuple

import pytest
import torch
from program import enable
from shared import native_modules

from capture.compiled import Unavailable
from capture.device import compiles
from enable import library
from enable.serve.floats import Asked, General
from enable.serve.native import load, state
from enable.serve.overlap import footprint_of
from enable.serve.shortcuts import looked_at
from traces.overloads import resolve

pytestmark = [
    pytest.mark.filterwarnings("ignore:(?s).*Overriding a previously registered kernel:UserWarning"),
    pytest.mark.timeout(900),  # the first test builds the module, and other processes wait
]

RELU, ADD, COPY, LISTS = (
    resolve(f"aten::{name}") for name in ("relu", "add.Tensor", "_foreach_add.Scalar", "_foreach_add.ScalarList")
)


@pytest.fixture(scope="session")
def module():
    return load(native_modules())


@contextmanager
def registered(module, op, answer, key="CPU"):
    """Python's kernel for an overload, and the module's functor before it. answer: of the call's arguments."""
    native = torch.library.get_kernel(op, key)
    calls = []

    def kernel(*args, **kwargs):
        calls.append(args)
        given = answer(*args, **kwargs)
        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
        return native.call_boxed(keys, *args, **kwargs) if given is None else given

    with ExitStack() as stack:
        scope = torch.library.Library("aten", "IMPL")
        stack.callback(scope._destroy)
        name = ".".join(part for part in (op._schema.name, op._schema.overload_name) if part)
        scope.impl(name.removeprefix("aten::"), kernel, key, allow_override=True)
        stack.enter_context(module.before([(op, key)]))
        yield calls


def depositing(module, program, answer=None):
    """Answers that leave a program for later calls."""

    def kernel(*args, **kwargs):
        looked = looked_at(0, args, kwargs)
        if module.wanted():
            module.deposit(program(looked.tensors), looked)
        return answer

    return kernel


def aligned(tensors):
    return [t.data_ptr() % 16 == 0 for t in tensors]


def first(module, hooks=()):
    """A program that returns its first tensor."""
    return lambda tensors: module._module.Program(
        aligned(tensors), [], [], [("tensor", 0)], list(hooks), None, [], None
    )


def test_a_known_call_does_not_reach_python(module):
    x = torch.tensor([-1.0, 2.0, 3.0, 4.0])
    with registered(module, RELU, depositing(module, first(module))) as calls:
        assert torch.relu(x).tolist() == [0, 2, 3, 4]
        assert torch.relu(x) is x
        y = torch.full((4,), -7.0)
        assert torch.relu(y).tolist() == [-7] * 4
        assert len(calls) == 1
    assert torch.relu(y).tolist() == [0] * 4


DIFFERENT = {
    "size": lambda x: x[:3],
    "stride": lambda x: torch.zeros(8)[::2],
    "dtype": lambda x: x.int(),
    "dimensions": lambda x: x.view(2, 2),
    "alignment": lambda x: torch.zeros(5)[1:],
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_another_call_reaches_python(module, other):
    x = torch.full((4,), -1.0)
    with registered(module, RELU, depositing(module, first(module))) as calls:
        torch.relu(x)
        for _ in range(2):
            torch.relu(x)
        assert len(calls) == 1
        torch.relu(other(x))
        assert len(calls) == 2
        assert torch.relu(x) is x


def test_numbers_tensors_that_are_one_and_the_default_dtype_are_part_of_the_key(module):
    x, y = torch.ones(4), torch.ones(4)
    with registered(module, ADD, depositing(module, first(module), x)) as calls:
        for call, new in (
            (lambda: torch.add(x, y), 1),
            (lambda: torch.add(y, x), 0),
            (lambda: torch.add(x, x), 1),
            (lambda: torch.add(x, y, alpha=2), 1),
            (lambda: torch.add(x, y, alpha=2.0), 1),
            (lambda: torch.add(x, 2.0), 1),
            (lambda: torch.add(x, 3.0), 1),
            (lambda: torch.add(x, -0.0), 1),
            (lambda: torch.add(x, 0.0), 1),
            (lambda: torch.add(x, 2), 1),
            (lambda: torch.add(x, y), 0),
        ):
            before = len(calls)
            call()
            call()
            assert len(calls) - before == new
        torch.set_default_dtype(torch.float64)
        try:
            torch.add(x, y)
            assert len(calls) == 10
        finally:
            torch.set_default_dtype(torch.float32)


FITS = [  # alike, fixed, asked; floats that fit, and others
    (([[0, 1]], [], []), (3.0, 3.0), (3.0, 4.0)),
    (([[0], [1]], [], []), (3.0, 4.0), (float("inf"), 4.0)),
    (([[0]], [(1, 0.0)], []), (3.0, 0.0), (3.0, -0.0)),
    (([[0], [1]], [], [(1, True, "lt", 2.0, True)]), (9.0, -1.5), (9.0, -2.0)),
    (([[0], [1]], [], [(1, False, "ge", 2.0, False)]), (9.0, -2.0), (9.0, 2.0)),
    (([[0], [1]], [], [(0, False, "eq", 2.0, False)]), (9.0, 2.0), (2.0, 2.0)),
    (([[0], [1]], [], [(0, False, "ne", 2.0, False)]), (2.0, 1.0), (3.0, 1.0)),
    (([[0], [1]], [], [(0, False, "gt", 2.0, True)]), (2.5, 1.0), (2.0, 1.0)),
    (([[0], [1]], [], [(0, False, "le", 2.0, True)]), (2.0, 1.0), (2.5, 1.0)),
]


@pytest.mark.parametrize(("fits", "fitting", "other"), FITS)
def test_a_program_of_many_floats_answers_those_that_fit(module, fits, fitting, other):
    x, y = torch.ones(4), torch.ones(4)

    def program(tensors):
        return module._module.Program(aligned(tensors), [], [], [("tensors", [0, 1])], [], (*fits, None), [], None)

    with registered(module, LISTS, depositing(module, program, [x, y])) as calls:
        answer = torch._foreach_add([x, y], [7.0, 7.0])
        count = len(calls)
        for floats, new in ((fitting, 0), (other, 1)):
            torch._foreach_add([x, y], list(floats))
            assert len(calls) - count == new
    of_all = General(None, *map(tuple, fits[:2]), tuple(Asked(*one) for one in fits[2]))
    assert answer and of_all.fits(fitting) and not of_all.fits(other)


def test_memory_is_allocated_anew_and_lists_are_returned(module):
    def program(tensors):
        made = [((2, 3), (1, 2), torch.float64, 0, 0), ((16,), (1,), torch.uint8, 0, 0)]
        return module._module.Program(aligned(tensors), made, [], [("tensors", [1, 0])], [], None, [], None)

    x = torch.ones(4)
    with registered(module, COPY, depositing(module, program)) as calls:
        torch._foreach_add([x], 1.0)
        one, same = torch._foreach_add([x], 1.0)
        other, _ = torch._foreach_add([x], 1.0)
        assert len(calls) == 1
        assert same is x
        assert (one.shape, one.stride(), one.dtype) == ((2, 3), (1, 2), torch.float64)
        assert one.data_ptr() != other.data_ptr()


def test_a_call_without_tensors_is_for_the_device_that_it_names(module):
    def program(tensors):
        return module._module.Program([], [((), (), torch.float64, 0, 0)], [], [("tensor", 0)], [], None, [], None)

    with registered(module, resolve("aten::scalar_tensor"), depositing(module, program)) as calls:
        torch.scalar_tensor(3)
        one, other = torch.scalar_tensor(3), torch.scalar_tensor(3)
        assert len(calls) == 1
        assert one.dtype == torch.float64 and one.data_ptr() != other.data_ptr()
        torch.scalar_tensor(4)
        torch.scalar_tensor(3, device="cpu")
        torch.scalar_tensor(3, dtype=torch.int32)
        assert len(calls) == 3


def test_sparse_tensors_are_taken_apart_and_put_together(module):
    def program(tensors):
        sparse = ("sparse", ("tensor", 0), ("view", 1, (2,), (1,), 0), (4,), True)
        return module._module.Program(aligned(tensors), [], [], [sparse], [], None, [], None)

    def given(*indices):
        return torch.sparse_coo_tensor(torch.tensor([indices]), torch.full((2,), -3.0), (4,)).coalesce()

    with registered(module, resolve("aten::relu"), depositing(module, program), "SparseCPU") as calls:
        assert torch.relu(given(0, 2)).to_dense().tolist() == [0] * 4
        x = given(1, 3)
        answer = torch.relu(x)
        assert len(calls) == 1
        assert answer.is_coalesced() and answer.to_dense().tolist() == [0, -3, 0, -3]
        assert answer._indices().data_ptr() == x._indices().data_ptr()
        torch.relu(torch.sparse_coo_tensor(x._indices(), x._values(), (4,), is_coalesced=False))
        torch.relu(torch.sparse_coo_tensor(x._indices(), x._values(), (5,), is_coalesced=True))
        assert len(calls) == 3


def test_gradients_are_those_of_the_operator(module):
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    with registered(module, RELU, depositing(module, first(module))) as calls:
        torch.relu(x)
        y = torch.relu(x)
        assert len(calls) == 1
        assert y.grad_fn.name() == "ReluBackward0"


def test_what_a_wrapper_calls_is_given_no_program(module):
    x = torch.full((4,), -1.0)

    def outer(tensor, other, alpha=1):
        torch.relu(x)
        return x

    with ExitStack() as stack:
        inner = stack.enter_context(registered(module, RELU, depositing(module, first(module))))
        outside = stack.enter_context(registered(module, ADD, outer))
        for _ in range(2):
            torch.add(x, x)
        assert len(outside) == len(inner) == 2
        torch.relu(x)
        assert torch.relu(x) is x
        torch.add(x, x)  # what a wrapper calls goes to Python, program or not
        assert len(inner) == 4


def test_a_program_of_other_tensors_is_not_kept(module):
    x = torch.full((4,), -1.0)

    def answer(tensor):
        module.deposit(first(module)([tensor]), looked_at(0, (torch.ones(4),), {}))

    with registered(module, RELU, answer) as calls:
        for _ in range(3):
            assert torch.relu(x).tolist() == [0] * 4
        assert len(calls) == 3


def test_hooks_of_launches_are_not_passed_by(module):
    x, hooks = torch.full((4,), -1.0), []
    with registered(module, RELU, depositing(module, first(module, [hooks]))) as calls:
        torch.relu(x)
        torch.relu(x)
        assert len(calls) == 1
        hooks.append("a profiler")
        torch.relu(x)
        assert len(calls) == 2
        hooks.clear()
        assert torch.relu(x) is x
        assert len(calls) == 2


def test_a_call_with_a_generator_has_no_key(module):
    wanted = []
    with registered(module, resolve("aten::bernoulli_.float"), lambda *args, **kwargs: wanted.append(module.wanted())):
        torch.ones(4).bernoulli_(0.5)
        torch.ones(4).bernoulli_(0.5, generator=torch.Generator())
    assert wanted == [True, False]


def test_an_error_of_python_leaves_nothing_behind(module):
    def broken(x):
        raise ValueError("broken")

    with registered(module, RELU, broken):
        for _ in range(2):
            with pytest.raises(ValueError, match="broken"):
                torch.relu(torch.ones(2))
        assert not module.wanted()
    with registered(module, RELU, depositing(module, first(module))) as calls:
        torch.relu(torch.ones(4))
        torch.relu(torch.ones(4))
        assert len(calls) == 1


def test_threads_share_programs(module):
    wrong = []

    def work(n):
        x = torch.full((n,), -1.0)
        for _ in range(200):
            answer = torch.relu(x)
            if answer is not x and answer.tolist() != [0] * n:
                wrong.append(answer)

    with registered(module, RELU, depositing(module, first(module))) as calls:
        threads = [threading.Thread(target=work, args=(4 + i % 3,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(calls) <= 6


def test_calls_are_counted_once_each(module):
    programs = []

    def program(tensors):
        programs.append(first(module)(tensors))
        return programs[-1]

    with registered(module, RELU, depositing(module, program)):
        for _ in range(5):
            torch.relu(torch.ones(4))
    assert [programs[0].calls(), programs[0].calls()] == [4, 0]


def test_a_launch_names_what_it_lacks(module):
    make = module._module.Launch
    with pytest.raises(RuntimeError, match="no parameter of type tensordesc"):
        make(1, (1, 1, 1), 32, 0, 0, ["tensordesc<fp32[1]>"], [0], [])
    with pytest.raises(RuntimeError, match="no float is a i32"):
        make(1, (1, 1, 1), 32, 0, 0, ["i32"], [0], [(0, -1, 0)])
    with pytest.raises(RuntimeError, match="lacks pointers"):
        make(1, (1, 1, 1), 32, 0, 0, ["*fp32"], [None], [(0, 0, 0)]).run(0, 0)
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no CUDA driver"):
            make(1, (1, 1, 1), 32, 0, 0, ["i32", "fp32", "u64", "fp64"], [1, 0.5, 2**63, 1.0], []).run(0, 0)


def test_where_it_cannot_be_had_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(Unavailable, match=r"there is no c\+\+ to build it with"):
        load(tmp_path)
    assert state(tmp_path) == "calls go the way of Python: there is no c++ to build it with"
    monkeypatch.undo()
    monkeypatch.setenv("ENABLE_NATIVE", "0")
    with pytest.raises(Unavailable, match="ENABLE_NATIVE=0"):
        load(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr("triton.__version__", "3.60.1")
    with pytest.raises(Unavailable, match=r"Triton 3\.60\.1 was not tried; 3\.6 and 3\.9 were"):
        load(tmp_path)


def test_it_is_of_cuda_alone(tmp_path):
    with pytest.raises(library.UserError, match="native on cpu: kernels are launched without Python on cuda alone"):
        library.register("cpu", ops=["aten::exp"], unverified=True, native=True, workspace=tmp_path)


def test_doctor_tells_of_it(tmp_path):
    done = enable("doctor", cwd=tmp_path)
    line = next(line for line in done.stdout.splitlines() if "native" in line)
    assert line.split(maxsplit=2)[2] in ("to be built at the first registration on a GPU", "built"), line


@pytest.fixture
def device(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if not compiles():
        pytest.skip("needs kernels compiled: pytest -m gpu, without TRITON_INTERPRET")
    return "cuda"


OPS = ["aten::mm", "aten::mul_.Tensor", "aten::add.Tensor", "aten::native_layer_norm", "aten::_foreach_add_.List"]


@pytest.mark.gpu
def test_calls_on_a_device_are_launched_natively_and_counted(device):
    with library.use(device, ops=OPS, unverified=True, native=True) as registration:
        assert registration.native
        a, b = (torch.randn(65, 64, device=device) for _ in range(2))
        for _ in range(5):
            torch.testing.assert_close(torch.add(a, b, alpha=2).cpu(), a.cpu() + b.cpu() * 2)
            torch.testing.assert_close(
                torch.nn.functional.layer_norm(a, (64,)).cpu(), torch.nn.functional.layer_norm(a.cpu(), (64,))
            )
            torch.testing.assert_close(
                (a @ b.t()).cpu().double(), a.cpu().double() @ b.cpu().double().t(), atol=1e-4, rtol=1e-4
            )
            want = [a.cpu() + b.cpu(), b.cpu() + b.cpu()]
            torch._foreach_add_([a, b], [b.clone(), b.clone()])  # ATen may read b after it is written
            torch.testing.assert_close([a.cpu(), b.cpu()], want)
            a, b = a / 4, b / 4
            want = a.cpu() * b.cpu()
            torch.testing.assert_close(a.mul_(b).cpu(), want)
        server = registration._server
        assert sum(ready.program is not None for _, ready in server._programs) >= len(OPS)
        native = sum(program.calls() for program, _ in server._programs)
        assert native >= 4 * len(OPS)


@pytest.mark.gpu
def test_streams_threads_and_graphs(device):
    with library.use(device, ops=["aten::add.Tensor"], unverified=True, native=True) as registration:
        x, y = torch.ones(1000, device=device), torch.ones(1000, device=device)
        for _ in range(3):
            torch.add(x, y)
        found = []

        def other():
            with torch.cuda.stream(torch.cuda.Stream()):
                found.append(torch.add(x, y).sum().item())

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert found == [2000]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            z = torch.add(x, y)
        x.fill_(5)
        graph.replay()
        assert z.sum().item() == 6000
        assert registration.counts.served["aten::add.Tensor"] == 5


@pytest.mark.gpu
def test_calls_that_draw_with_one_seed_over_and_over_are_repeated(device):
    with library.use(device, ops=["aten::randn"], unverified=True, native=True):
        drawn = []
        for seed in (5, 5, 5, 6, 6, 5):
            torch.manual_seed(seed)
            drawn.append(torch.randn(7, device=device).tolist() + torch.randn(7, device=device).tolist())
    assert drawn[0] == drawn[1] == drawn[2] == drawn[5] != drawn[3] == drawn[4]
    assert drawn[0][:7] != drawn[0][7:]


@pytest.mark.gpu
def test_what_is_drawn_is_the_same_either_way(device):
    ops = ["aten::native_dropout", "aten::uniform_", "aten::rand"]
    drawn = []
    for native in (True, False):
        with library.use(device, ops=ops, unverified=True, native=native) as registration:
            for seed in (5, 5, 6):
                torch.manual_seed(seed)
                x = torch.ones(1000, device=device)
                for _ in range(5):
                    drawn.append(torch.native_dropout(x, 0.25, True)[1].cpu())
                    drawn.append(x.clone().uniform_(2, 3).cpu())
                    drawn.append(torch.rand(7, device=device).cpu())
            drawn.append(torch.cuda.default_generators[0].get_offset())
            if native:
                by_itself = {ready.overload for program, ready in registration._server._programs if program.calls()}
                assert by_itself == set(ops)
            else:
                assert registration.counts.served == {op: 15 for op in ops}
    half = len(drawn) // 2
    for one, other in zip(drawn[:half], drawn[half:], strict=True):
        assert one == other if isinstance(one, int) else torch.equal(one, other)
    assert torch.equal(drawn[0], drawn[15]) and not torch.equal(drawn[0], drawn[3])


def test_a_program_of_a_call_that_writes_does_not_fit_tensors_that_share_memory(module):
    """The same tensors as in overlap.py, whose `may_clash` the module has once more."""
    memory = torch.zeros(40)
    op = torch.ops.aten.addcmul_.default
    parts = [memory[:8], memory[8:16], memory[16:24], memory[4:12], memory[12:20]]
    for a, b, c in itertools.product(parts, repeat=3):
        tensors, footprint = footprint_of(op, (a, b, c), {})
        made = [("tensor", 0)]
        program = module._module.Program(aligned(tensors), [], [], made, [], None, [], astuple(footprint))
        clashes = footprint.may_clash([t.data_ptr() for t in tensors])
        assert (program.run(tensors) is None) == clashes
        assert clashes == any(x is not a and abs(x.data_ptr() - a.data_ptr()) < 32 for x in (b, c))
