"""Keys of calls that are only counted: as fine as the tokens that tell signatures apart, and no finer."""

import itertools
import math

import pytest
import torch
from shared import native_modules
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode

from capture import Recorder
from capture.keys import in_cpp, maker
from capture.targets import load_target
from traces import Trace
from traces.call_keys import key_function, recorded_key
from traces.overloads import resolve

SMALL = {"n_layer": "2", "n_head": "2", "n_embd": "16", "block_size": "8", "dropout": "0.2"}


def symbol():
    """A number that is not known."""
    environment = ShapeEnv()
    return environment.create_unbacked_symint()


def itself(key):
    return key


@pytest.fixture
def native():
    return native_modules()


@pytest.fixture(params=["Python", "C++"])
def made(request, native):
    """The key of a call, by either way."""
    maker = key_function if request.param == "Python" else in_cpp(native)
    return lambda op, args, kwargs: maker(op, itself)(*args, **kwargs)


class Collected(TorchDispatchMode):
    def __init__(self, made):
        super().__init__()
        self.calls = []
        self.made = made

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "aten":
            self.calls.append((func, self.made(func, args, kwargs or {}), recorded_key(0, args, kwargs or {})))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("optimizer", ["adamw", "adamw-foreach", "adamw-fused"])
def test_calls_of_a_program_have_equal_keys_where_they_are_alike(made, optimizer):
    training = load_target("nanogpt", SMALL, batch=2, optimizer=optimizer).training
    batch = next(training.batches)
    with Collected(made) as collected:
        for _ in range(2):
            training.step(batch)
    of_op = {}
    for op, made, token in collected.calls:
        of_op.setdefault(op, set()).add((hash(made), made, token))
    for op, found in of_op.items():
        assert len({made for _, made, _ in found}) == len({token for _, _, token in found}) == len(found), op


X, Y = torch.ones(3, 3), torch.zeros(3, 3)
Z = torch.ones(3, 3, dtype=torch.complex64)
DENSE = torch.tensor(0.0).expand(3, 3)
INDICES = torch.tensor([[0, 0], [1, 1]])
UNLIKE = {  # calls of one overload of which no two are alike
    "aten::add.Tensor": [
        ((X, Y), {}),
        ((X, X), {}),
        ((X, Y.to(torch.float64)), {}),
        ((X, Y.t()), {}),
        ((X, Y), {"alpha": 2}),
        ((X, Y), {"alpha": True}),
        ((X, Y), {"alpha": 2.5}),
        ((X, 1), {}),
        ((X, True), {}),
        ((X, 1.0), {}),
        ((X, 2.0), {}),
        ((DENSE, Y), {}),
        ((DENSE.to_sparse(), Y), {}),
        ((torch.sparse_coo_tensor(INDICES, torch.ones(2), (3, 3), check_invariants=True), Y), {}),
        ((X.to("meta"), Y), {}),
    ],
    "aten::sum.dim_IntList": [((X, [0]), {}), ((X, [-1]), {}), ((X, [-2]), {}), ((X, None), {}), ((X, [0], True), {})],
    "aten::clone": [
        ((Z,), {}),
        ((Z.conj(),), {}),
        ((Z.imag,), {}),
        ((Z.conj().imag,), {}),
        ((X,), {}),
        ((torch._neg_view(X),), {}),
        ((torch._efficientzerotensor([3, 3]),), {}),
    ],
    "aten::mm": [((Z, Z), {}), ((Z.conj(), Z), {}), ((Z, Z.conj()), {}), ((Z.conj(), Z.conj()), {})],
    "aten::clamp": [((X,), {}), ((X, None, 1.0), {}), ((X, 1.0), {}), ((X, 0, 1), {})],
    "aten::_to_copy": [((X,), {}), ((X,), {"dtype": torch.float16}), ((X,), {"dtype": torch.float64})],
    "aten::index.Tensor": [((X, [INDICES]), {}), ((X, [None, INDICES]), {}), ((X, [INDICES, INDICES]), {})],
    "aten::_foreach_add.List": [(([X], [Y]), {}), (([X, X], [Y, Y]), {}), (([X], [DENSE.to_sparse()]), {})],
    "aten::_foreach_mul.ScalarList": [(([X], [2]), {}), (([X], [2.0]), {}), (([X], [True]), {})],
    "aten::native_layer_norm_backward": [
        ((X, Y, [3], X, X, None, None, [True, True, True]), {}),
        ((X, Y, [3], X, X, None, None, [True, False, True]), {}),
        ((X, Y, [3], X, X, Y, None, [True, True, True]), {}),
    ],
}


@pytest.mark.parametrize("overload", UNLIKE)
def test_calls_that_differ_have_keys_that_differ(made, overload):
    op = resolve(overload)
    keys = [made(op, args, kwargs) for args, kwargs in UNLIKE[overload]]
    assert len({recorded_key(0, args, kwargs or {}) for args, kwargs in UNLIKE[overload]}) == len(keys)
    for a, b in itertools.combinations(keys, 2):
        assert a != b
    assert [made(op, args, kwargs) for args, kwargs in UNLIKE[overload]] == keys


def test_a_parameter_is_like_a_tensor(made):
    op = resolve("aten::mm")
    assert made(op, (nn.Parameter(X), Y), {}) == made(op, (X, Y), {})


def test_every_overload_has_a_key():
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::"):
            assert callable(key_function(resolve(name), tuple))


def test_numbers_are_alike_by_what_kind_they_are(made):
    op = resolve("aten::_foreach_mul.ScalarList")
    kinds = [(0.0, -0.0), (1.0,), (0.5, 2.0, 1e300), (-0.5, -1.0, -1e300), (math.inf, -math.inf), (math.nan,), (2,)]
    keys = [{made(op, ([X], [value]), {}) for value in kind} for kind in kinds]
    assert [len(found) for found in keys] == [1] * len(kinds)
    assert len(set.union(*keys)) == len(kinds)


@pytest.mark.parametrize("value", [2**63, symbol, object()])
def test_what_has_no_bytes_has_no_key_in_cpp(native, value):
    find = in_cpp(native)(resolve("aten::add.Tensor"), itself)
    with pytest.raises(TypeError, match="this call has no key"):
        find(X, Y, alpha=value() if value is symbol else value)


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
@pytest.mark.parametrize("cpp", [False, True])
def test_a_call_without_a_key_is_counted(tmp_path, native, cpp):
    """Nested tensors have no strides; in the steady state too each of their calls is counted, by the longer way."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with Recorder(tmp_path / "a.trace", native=native if cpp else None) as recorder:
        for _ in range(5):
            for _ in range(3):
                torch.sin(nested)
                X.cos()
            recorder.step()
    assert not recorder.errors
    steps = {s.overload: s.steps for s in Trace.open(tmp_path / "a.trace").signatures.values()}
    assert steps["aten::sin"] == steps["aten::cos"] == ((0, 4, 3),)


def test_a_recorder_counts_alike_by_either_way(tmp_path, native):
    found = []
    for directory in (None, native):
        torch.manual_seed(0)
        training = load_target("nanogpt", SMALL, batch=2).training
        with Recorder(tmp_path / f"{directory is None}.trace", model=training.model, native=directory) as recorder:
            for _ in range(5):
                training.step(next(training.batches))
                recorder.step()
        signatures = Trace.open(recorder.path).signatures
        found.append({key: (s.calls, s.phases, s.steps) for key, s in signatures.items()})
    assert found[0] == found[1]


def test_where_there_is_no_compiler_python_makes_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("ENABLE_NATIVE", "0")
    with pytest.warns(RuntimeWarning, match="calls are told apart in Python, not in C[+][+]: ENABLE_NATIVE=0"):
        assert maker(tmp_path) is key_function
    assert maker(None) is key_function
