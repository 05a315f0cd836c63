"""What a child remembers so as not to do it again at every call, against what it would find by doing it."""

import functools
import inspect
import sys

import pytest
import torch

from traces import UserError
from traces.values import Packed
from verify.cases import opinfo
from verify.cases.oracle import Trusted
from verify.cases.samples import opinfo_cases
from verify.child import answers, global_state, quick
from verify.child.answers import EarlierResults
from verify.child.global_state import GlobalState
from verify.sandbox.nursery import SAMPLED


def plain(a, b):
    """A function without defaults."""


def defaults(a, b=2, *, c, d=4):
    """One with all kinds of parameters that a kernel may have."""


@pytest.mark.parametrize("fn", [plain, defaults])
@pytest.mark.parametrize("args", [(), (1,), (1, 2), (1, 2, 3)])
@pytest.mark.parametrize("names", [(), ("a",), ("b",), ("c",), ("a", "b"), ("b", "c"), ("a", "b", "c", "d")])
def test_arguments_are_bound_as_python_binds_them(fn, args, names):
    kwargs = {name: name.upper() for name in names if name in inspect.signature(fn).parameters}

    def told(bind):
        try:
            return bind()
        except TypeError as error:
            return str(error)

    expected = told(lambda: inspect.getcallargs(fn, *args, **kwargs))
    assert told(lambda: quick.arguments_of(fn, args, kwargs)) == expected


TYPES = """
import triton.language as tl
from triton.runtime import interpreter

def refused(shape):
    try:
        tl.block_type(tl.float32, shape)
    except (TypeError, ValueError) as error:
        return str(error)

def tensor(of):
    return tl.tensor(interpreter.TensorHandle(None, tl.pointer_type(tl.int8)), of)

flat, again = tl.block_type(tl.float32, [16]), tl.block_type(tl.float32, [tl.constexpr(16)])
assert flat == again == tl.block_type(tl.float32, tl.tuple([16])) and flat.numel == again.numel == 16
assert flat != tl.block_type(tl.int32, [16]) and flat != tl.block_type(tl.float32, [4, 4]) and flat != tl.float32
assert tl.int32 != tl.uint32 and tl.float32 == tl.dtype("fp32") and tl.float32 == tl.constexpr(tl.float32)
far, near = tl.pointer_type(tl.int8, "other"), tl.pointer_type(tl.int8)
assert far.name == near.name and far != near and tensor(far).dtype is far and tensor(near).dtype is near
assert tl.block_type(far, [2]).element_ty is far and tl.block_type(near, [2]).element_ty is near
assert [tensor(t).numel.value for t in (flat, tl.float32, flat, tl.block_type(tl.int8, [2, 8]))] == [16, 1, 16, 16]
assert [n.value for n in tensor(tl.block_type(tl.int8, [2, 8])).shape] == [2, 8]
assert refused([3]) == refused([3]) and "power of 2" in refused([3]) and "0d" in refused([])
assert interpreter._get_np_dtype(tl.bfloat16) != interpreter._get_np_dtype(tl.float16)
assert interpreter._get_np_dtype(tl.block_type(near, [2])) == interpreter._get_np_dtype(near)
semantic = interpreter.interpreter_semantic
promoted = [semantic.computation_type_impl(a, s, b, t, d).name for _ in range(2) for a, b in
            ((tl.int32, tl.float16), (tl.int8, tl.uint8)) for s, t in ((False, True), (False, False)) for d in (False,)]
assert promoted == ["fp16", "fp16", "int8", "uint8"] * 2, promoted
return "fine"
"""


def test_types_are_told_apart(start, probe):
    assert probe(start("full"), TYPES) == "fine"


@pytest.mark.parametrize("counted", [True, False])
def test_what_was_replaced_is_told_and_put_back(monkeypatch, counted):
    monkeypatch.setattr(global_state, "COUNTED", counted and global_state.COUNTED)
    with torch.no_grad():
        state = GlobalState()
        assert state.restore() == []
        original, method = torch.relu, torch.Tensor.add
        for _ in range(2):
            torch.relu = lambda x: x
            torch.Tensor.add = torch.Tensor.odd = lambda *args: None
            assert state.restore() == ["torch.relu", "torch.Tensor.add", "torch.Tensor.odd"]
            assert torch.relu is original and torch.Tensor.add is method and not hasattr(torch.Tensor, "odd")
            assert state.restore() == []
        torch.relu = print
        torch.relu = original
        assert state.restore() == []


def test_this_python_counts_changes_until_it_does_not():
    assert (sys.version_info < (3, 13)) == global_state.COUNTED


def test_changes_are_seen_where_they_are_counted(monkeypatch):
    """And only there looked for: a count that stands still hides what changed."""
    if not global_state.COUNTED:
        pytest.skip("this Python does not count them")
    with torch.no_grad():
        state = GlobalState()
        looked = []
        for space in state._spaces:
            monkeypatch.setattr(space, "_restored", functools.partial(looked.append, space._name))
        state.restore()
        assert looked == []


def results(*tensors):
    """What one call returned."""
    return list(tensors)


def test_memory_of_an_earlier_result_is_found_whatever_part_it_is_of():
    whole = bytearray(4096)

    def part(first, size=64):
        return torch.frombuffer(whole, dtype=torch.uint8, count=size, offset=first)

    kept = EarlierResults()
    assert not kept.shares_memory(results(part(0), part(128)), ())
    assert not kept.shares_memory(results(part(64), part(192, 1024)), ())
    assert kept.shares_memory(part(130, 4), ())
    assert kept.shares_memory(part(1200, 64), ())
    assert kept.shares_memory(part(1250, 64), ())  # with the one before, which lay half in another
    assert not kept.shares_memory(part(2048), ())
    assert kept.shares_memory(part(2048), ())
    assert not kept.shares_memory(part(2048), {part(2048).untyped_storage().data_ptr()})
    assert not kept.shares_memory(torch.empty(0), ())


def test_of_many_results_the_oldest_are_let_go(monkeypatch):
    monkeypatch.setattr(answers, "MAX_KEPT_BYTES", 10_000)
    kept = EarlierResults()
    first = torch.empty(4000, dtype=torch.uint8)
    assert not kept.shares_memory(first, ())
    assert kept.shares_memory(first, ())
    first.untyped_storage().resize_(8)  # as a wrapper may that holds it
    for _ in range(20):
        kept.shares_memory(torch.empty(3000, dtype=torch.uint8), ())
    assert kept._bytes <= 10_000 and len(kept._starts) == len(kept._ends) <= 3 and not kept._shared


def test_samples_read_in_another_process_are_the_same(tmp_path, monkeypatch):
    there = opinfo_cases(["aten::gelu"], ("float32", "bfloat16"))
    monkeypatch.delitem(sys.modules, opinfo._DATABASE)
    monkeypatch.setattr(opinfo, "opinfo_cases", lambda **asked: pytest.fail("read here"))
    found = opinfo.kept_cases(tmp_path, ["aten::gelu"], ("float32", "bfloat16"))
    assert found and [c.id for c in found] == [c.id for c in there]
    assert {"aten::gelu", "aten::gelu_backward"} <= opinfo.tested_overloads(tmp_path)


def test_what_that_process_raises_is_told(tmp_path):
    asked = {"overloads": ["aten::no_such"], "dtypes": ["float32"], "every": True}
    with pytest.raises(RuntimeError, match="no_such"):
        opinfo._READER.ask(Packed({}), {"path": str(tmp_path / "kept.json"), "samples": asked})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("runner, seconds, told", [(SAMPLED, 1e-6, "no answer within"), ("os:abort", 60.0, "")])
def test_a_process_that_ends_before_it_has_them_is_told_in_one_line(tmp_path, monkeypatch, runner, seconds, told):
    reader = Trusted(runner, 8 << 30, seconds)
    monkeypatch.setattr(opinfo, "_READER", reader)
    monkeypatch.delitem(sys.modules, opinfo._DATABASE, raising=False)
    with pytest.raises(UserError, match=rf"^OpInfo's samples of aten::gelu: the process .* ended \({told}.*\); try"):
        opinfo.kept_cases(tmp_path, ["aten::gelu"], ("float32",))
    reader.close()
    assert not list(tmp_path.iterdir())
