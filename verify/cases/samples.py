"""OpInfo samples as cases: each sample's arguments, bound to the ATen overload that takes them."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.utils._python_dispatch import TorchDispatchMode

from traces import UserError
from traces.facts import tagged
from traces.overloads import base_name, bind, call, name_of, resolve, written
from traces.subgraphs import is_subgraph
from traces.values import unpack
from verify.cases.callers import Samples, called_cases
from verify.cases.case import Case, case_of_values
from verify.cases.of_forwards import linked_cases
from verify.cases.of_out import out_cases, writes_out
from verify.cases.of_schema import schema_cases
from verify.cases.packed import unsupported
from verify.cases.preconditions import broken, keeping
from verify.contract.derive import functional_base

MAX_BYTES = 32 << 20  # all samples together; in base64 they fit into a file that a child may write
MAX_SAMPLES = 900  # per operator and dtype, as in the published system
# Samples that are run to record an operator's calls; the second number applies when all operators are searched
# for callers.
_TRIED, _GLANCED = 8, 2
_SHAPING = tagged("shaping")
_NO_ANSWER = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, KeyError, AssertionError)


def overloads_of(operator: str) -> list[str]:
    """Return an operator's functional overloads.

    `aten::exp` names one overload. An OpInfo name such as `nn.functional.gelu` is resolved in three steps:
    linalg.inv is aten::linalg_inv; nn.functional.nll_loss is the one operator that it calls, aten::nll_loss_nd;
    otherwise the last part in the name is used.

    Raises:
        UserError: There is no such operator, or PyTorch composes it from several.
    """
    if operator.startswith("aten::") or is_subgraph(operator):
        return [name_of(resolve(operator))]
    named = _packet(operator.replace(".", "_"))
    packet = named or _single(_called(operator)) or _packet(operator.rpartition(".")[2])
    if packet is None:
        raise UserError(_unknown(operator, _called(operator)))
    candidates: list[OpOverload] = [getattr(packet, name) for name in packet.overloads()]  # type: ignore[no-untyped-call]
    functional = [op for op in candidates if not any(a.is_out for a in op._schema.arguments)]
    return [name_of(op) for op in [op for op in functional if _of_tensors(op)] or functional]


def _packet(name: str) -> OpOverloadPacket | None:
    packet = getattr(torch.ops.aten, name, None)
    return packet if isinstance(packet, OpOverloadPacket) else None


def _single(called: list[_Called]) -> OpOverloadPacket | None:
    """Return the single ATen operator that implements a function written in Python, or None."""
    names = {c.name for c in called if c.alone}
    return _packet(names.pop()) if len(names) == 1 else None


def _unknown(operator: str, called: list[_Called]) -> str:
    names = list(dict.fromkeys(c.name for c in called if c.name not in _SHAPING))
    if names:
        description = ", ".join(f"aten::{name}" for name in names[:6])
        return (
            f"{operator!r} is no single ATen operator: PyTorch calls {description} for it; name one of these with --op"
        )
    known = sorted({info.name for infos in _infos().values() for info in infos} - {operator})
    near = ", ".join(get_close_matches(operator, known, 3) or known[:3])
    return f"unknown operator {operator!r}; did you mean {near}? overloads are written aten::exp"


def _of_tensors(op: OpOverload) -> bool:
    return any("Tensor" in str(a.type) for a in (*op._schema.arguments, *op._schema.returns))


def opinfo_cases(overloads: list[str], dtypes: tuple[str, ...], every: bool = True) -> list[Case]:
    """Return a case for each sample that one of the overloads takes.

    Args:
        overloads: Full names of the overloads.
        dtypes: Dtypes of the samples, such as float32 or int64.
        every: If True, each overload without samples gets cases from other operators' calls or from its schema.
            If False, this happens only if none of the overloads has any samples.
    """
    wanted = [getattr(torch, d) for d in dtypes]
    bases = sorted({base_name(resolve(o)) for o in overloads})
    named = [info for name, infos in _infos().items() if name in bases for info in infos]
    cases: dict[str, Case] = {}
    for info in named or [info for base in bases for info in _callers().get(base, [])]:
        for dtype in (d for d in wanted if d in info.supported_dtypes("cpu")):
            for args, kwargs in _samples(info, dtype, MAX_SAMPLES):
                case = _reached(overloads, info.op, args, kwargs) or _bound(overloads, args, kwargs)
                if case is not None:
                    cases.setdefault(case.id, case)
    known = {case.overload for case in cases.values()}
    missing = [o for o in overloads if o not in known] if every or not known else []
    for dtype in wanted:
        for case in called_cases(missing, lambda operator, dtype=dtype: samples_of(operator, dtype)):  # type: ignore[misc]
            cases.setdefault(case.id, case)
    known = {case.overload for case in cases.values()}
    remaining = [o for o in (missing if every or not known else ()) if o not in known]
    generated = [_into_out(o, dtypes) or linked_cases(o, wanted) or schema_cases(o, tuple(wanted)) for o in remaining]
    adapted = map(_kept, [*cases.values(), *itertools.chain.from_iterable(generated)])
    return within(MAX_BYTES, list({case.id: case for case in adapted if case is not None}.values()))


def within(limit: int, cases: list[Case]) -> list[Case]:
    """Return the cases without the largest ones if all together have more bytes than the limit."""
    ordered = sorted(cases, key=_nbytes)
    totals = itertools.accumulate(map(_nbytes, ordered))
    kept = {case.id for case, total in zip(ordered, totals, strict=True) if total <= limit}
    return [case for case in cases if case.id in kept]


def _nbytes(case: Case) -> int:
    return sum(len(data) for data in case.load().data if data is not None)


def _kept(case: Case) -> Case | None:
    """Return the case, adapted to PyTorch's documented preconditions, or None if that is impossible.

    Some samples violate them, for example those for histogramdd.
    """
    arguments = unpack(case.load())
    if broken(case.overload, arguments) is None:
        return case
    arguments = keeping(case.overload, arguments)
    return case_of_values(case.overload, **arguments) if broken(case.overload, arguments) is None else None


def _into_out(overload: str, dtypes: tuple[str, ...]) -> list[Case]:
    base = functional_base(overload)
    return out_cases(overload, opinfo_cases([base], dtypes)) if writes_out(overload) and base != overload else []


def operators() -> list[str]:
    """Return the names of all OpInfo operators."""
    return sorted({info.name for infos in _infos().values() for info in infos})


def samples_of(operator: str, dtype: torch.dtype, most: int = MAX_SAMPLES) -> Samples:
    """Yield functions and their arguments for one OpInfo operator; nothing if it does not take the dtype."""
    for info in _named(operator):
        if dtype in info.supported_dtypes("cpu"):
            for args, kwargs in _samples(info, dtype, most):
                yield info.op, args, kwargs


@cache
def _infos() -> dict[str, list[Any]]:
    """Group OpInfo's operators by their ATen base name, their own name, and its last part."""
    from torch.testing._internal import common_methods_invocations as database

    by_name: dict[str, list[Any]] = {}
    for info in database.op_db:
        if info.name.startswith("sparse."):
            continue
        for name in {info.aten_name, info.name.replace(".", "_"), info.name.rpartition(".")[2]} - {None}:
            by_name.setdefault(name, []).append(info)
    for info in foreach_infos():
        # An OpInfo for _foreach_zero, which exists in place only as _foreach_zero_.
        for name in {info.name, info.op.__name__}:
            by_name.setdefault(name, []).append(info)
    return by_name


def foreach_infos() -> list[Any]:
    """Return OpInfo's operators on lists of tensors, which its database stores separately."""
    from torch.testing._internal import common_methods_invocations as database

    databases = [v for k, v in vars(database).items() if k.startswith("foreach_") and k.endswith("_db")]
    return [info for infos in databases for info in infos]


def _named(operator: str) -> list[Any]:
    """Return OpInfo's entries with exactly this name, which may begin with `torch.`."""
    names = {operator, operator.removeprefix("torch.")}
    return [info for info in _infos().get(operator.rpartition(".")[2], []) if info.name in names]


@cache
def _callers() -> dict[str, list[Any]]:
    """Group OpInfo operators that are not ATen operators by the base name of the ATen operator they call."""
    callers: dict[str, list[Any]] = {}
    operators = dict.fromkeys(info.name for infos in _infos().values() for info in infos)
    for operator in (name for name in operators if _packet(name.replace(".", "_")) is None):
        for name in dict.fromkeys(c.name for c in _called(operator, _GLANCED) if c.alone):
            callers.setdefault(name, []).extend(_named(operator))
    return callers


class _Called(NamedTuple):
    """An ATen operator that a function calls.

    `alone` is True if its answer is the function's answer, and its arguments correspond.
    """

    name: str
    alone: bool


@cache
def _called(operator: str, samples: int = _TRIED) -> list[_Called]:
    """Return the ATen operators that the first samples for an OpInfo operator call."""
    called: dict[_Called, None] = {}
    for info in _named(operator):
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in info.supported_dtypes("cpu")), None)
        for args, kwargs in _samples(info, dtype, samples) if dtype is not None else ():
            try:
                with _Outermost() as mode, enable_python_dispatcher():
                    result = info.op(*args, **kwargs)
            except _NO_ANSWER:
                continue
            calls = [c for c in mode.calls if base_name(c.op) not in _SHAPING]
            alone = len(calls) == 1 and _same(calls[0], result, args, kwargs)
            called.update(dict.fromkeys(_Called(base_name(c.op), alone) for c in calls))
    return list(called)


def _same(made: _Call, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the ATen call returned the sample's result and takes the sample's arguments in order.

    Further required arguments have to be falsy, or a number that encodes a word.
    """
    if not _identical(made.result, result) or (args and made.args and not _identical(made.args[0], args[0])):
        return False
    sample_values = [value for value in (*args, *kwargs.values()) if _plain(value)]
    words = any(isinstance(value, str) for value in sample_values)
    demanded = [v for a, v in zip(made.op._schema.arguments, made.args, strict=False) if not a.has_default_value()]
    return all(not _plain(v) or not v or v in sample_values or (words and type(v) is int) for v in demanded)


def _plain(value: Any) -> bool:
    return isinstance(value, int | float | str | torch.dtype)


def _identical(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_identical, a, b))
    return a is b or (type(a) is type(b) and _plain(a) and bool(a == b))


class _Call(NamedTuple):
    op: OpOverload
    args: tuple[Any, ...]
    result: Any


class _First:
    """Observer that keeps the first call to one of some overloads as a case, in `case`."""

    def __init__(self, overloads: frozenset[str] = frozenset()) -> None:
        self._overloads = overloads
        self.case: Case | None = None

    def see(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.case is None and name_of(func) in self._overloads:
            self.case = _case(name_of(func), bind(func, args, kwargs))


class _Outermost(SchemaCheckMode):
    """Mode that records all calls to ATen operators, including those that ATen makes itself.

    It works before dispatch, a stage at which PyTorch admits only its own modes, such as SchemaCheckMode.
    """

    def __init__(self, first: _First | None = None) -> None:
        TorchDispatchMode.__init__(self, torch._C.DispatchKey.PreDispatch)  # type: ignore[no-untyped-call]
        self._first = first or _First()
        self.calls: list[_Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self._first.see(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        self.calls.append(_Call(func, args, result))
        return result


def _samples(info: Any, dtype: torch.dtype, most: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    from torch.testing._internal.common_utils import SEED, set_rng_seed

    torch.manual_seed(0)
    random.seed(0)  # some sample generators use Python's random module
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from functions that are deprecated, or that the samples use in unusual ways
        samples = info.sample_inputs_func(info, "cpu", dtype, False)
        # As info.sample_inputs does before each sample; calling that would also read the source of all callers
        # for unittest.
        set_rng_seed(SEED)
        for sample in itertools.islice(samples, most):
            yield (sample.input, *sample.args), dict(sample.kwargs)
            set_rng_seed(SEED)


def _as_taken(op: OpOverload, arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert arguments to the form in which ATen takes them.

    A single number becomes a list if the schema requires one. A device name becomes a device, because another
    device may replace it when the call is made.
    """
    lists = {a.name: getattr(a, "N", None) or 1 for a in op._schema.arguments if "List[int]" in str(a.type)}
    devices = {a.name for a in op._schema.arguments if "Device" in str(a.type)}

    def taken(name: str, value: Any) -> Any:
        if name in lists and type(value) is int:
            return [value] * lists[name]
        return torch.device(value) if name in devices and isinstance(value, str) else value

    return {name: taken(name, value) for name, value in arguments.items()}


def _hides_a_tensor(op: OpOverload, arguments: dict[str, Any]) -> bool:
    """Return True if a tensor is passed although the schema has an int.

    ATen would read the tensor's value back, and Python calls another overload.
    """
    ints = {a.name for a in op._schema.arguments if isinstance(a.type, torch.IntType)}
    return any(isinstance(value, torch.Tensor) for name, value in arguments.items() if name in ints)


def _bound(overloads: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Case | None:
    """Return the case for the first overload that answers.

    `out` and in-place forms get no samples of their own.
    """
    for overload in overloads:
        op = resolve(overload)
        names = {a.name for a in op._schema.arguments}
        positional = sum(not a.kwarg_only for a in op._schema.arguments)
        if len(args) > positional or kwargs.keys() - names:
            continue
        try:
            arguments = _as_taken(op, bind(op, args, kwargs))
            if _hides_a_tensor(op, arguments):
                continue
            call(op, {k: v.clone() if k in written(op) else v for k, v in arguments.items()})
        except _NO_ANSWER:
            continue
        return _case(overload, arguments)
    return None


class _Dispatched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode that shows dispatched calls to an observer."""

    def __init__(self, first: _First) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._first = first

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because the default makes the first call import torch._dynamo, which takes 1 to 2 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self._first.see(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def _reached(overloads: list[str], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Case | None:
    """Return the case for the call that the function makes to one of the overloads, with the arguments it receives."""
    outer, inner = _First(frozenset(overloads)), _First(frozenset(overloads))
    try:
        with _Dispatched(inner), _Outermost(outer), enable_python_dispatcher():
            function(*args, **kwargs)
    except _NO_ANSWER:
        return None
    return outer.case or inner.case


def _case(overload: str, arguments: dict[str, Any]) -> Case | None:
    case = case_of_values(overload, **arguments)
    return None if unsupported(case.load().tree) else case
