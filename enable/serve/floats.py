"""Generalize shortcuts to calls that differ in floats, such as an optimizer's, which change with each step.

The server watches two calls that differ only in floats, contents and pointers. If their launches differ only where
those floats are passed on unchanged, a third call is launched with its own floats. It must also answer the wrapper's
comparisons as the two calls did. `Number` records these comparisons. If a wrapper computes with a float, or converts
it to another number type, each value keeps its own shortcut. A random generator's counter is treated as a float too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from enable.serve.shortcuts import ARGUMENTS, FUNCTION, KernelLaunch, Shortcut

ESCAPE = "number_argument"  # in generate/blocks/types.py: converts a number to a launch argument
_DISGUISE = 0x555555555555555B  # XOR mask for integer launch arguments, as in generate/blocks/types.py
_COMPARED = {"__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge"}
_HARMLESS = {
    "__new__", "__init__", "__class__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__doc__",
    "__init_subclass__", "__subclasshook__", "__getformat__", "__sizeof__", "__abs__", "__float__", "__bool__",
    "fromhex", "from_number",
}  # fmt: skip


_Kind: TypeAlias = tuple[type, float, float]  # a number's type, its value in the first call and in the second


class Asked(NamedTuple):
    """A comparison between the float at a position, or its absolute value, and another number, with the outcome."""

    position: int
    absolute: bool
    name: str
    other: float
    outcome: bool

    def again(self, floats: Sequence[float]) -> bool:
        """Return True if the comparison has the same outcome with these floats."""
        value = floats[self.position]
        return bool(getattr(operator, self.name)(abs(value) if self.absolute else value, self.other)) is self.outcome


@dataclass
class Handling:
    """Records how a wrapper uses the floats of a call.

    Attributes:
        asked: Comparisons that the wrapper made.
        lost: Positions of floats that the wrapper used in a way that `asked` does not show.
        handing_on: True while a float is being converted to a launch argument.
    """

    asked: list[Asked] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    handing_on: bool = False  # a float is being converted to a launch argument


class Number(float):
    """A float that records its uses."""

    notes: Handling
    position: int
    absolute: bool

    def lose(self) -> None:
        """Record that this float is used in a way that cannot be tracked."""
        self.notes.lost.add(self.position)

    def __abs__(self) -> float:
        return number(abs(float.__float__(self)), self.notes, self.position, True)

    def __float__(self) -> float:
        if not self.notes.handing_on:
            self.lose()
        return float.__float__(self)

    def __bool__(self) -> bool:
        return bool(self != 0.0)


def _comparing(method: str, name: str) -> Callable[[Number, Any], Any]:
    """Return a comparison method that records its outcome."""

    def compare(self: Number, other: Any) -> Any:
        outcome = getattr(float, method)(self, other)
        if type(other) is float or (type(other) is int and abs(other) < 1 << 53):
            self.notes.asked.append(Asked(self.position, self.absolute, name, float(other), outcome))
        elif outcome is not NotImplemented:  # the other number may change between calls
            self.lose()
        return outcome

    return compare


def _losing(method: str) -> Callable[..., Any]:
    """Return a method that works as float's and marks the number as lost."""

    def lose(self: Number, *args: Any) -> Any:
        self.lose()
        return getattr(float, method)(self, *args)

    return lose


def _part(name: str) -> property:
    """Return a property that works as float's and marks the number as lost."""

    def get(self: Number) -> Any:
        self.lose()
        return getattr(float, name).__get__(self)

    return property(get)


for _name in dir(float):
    if _name in _COMPARED:
        setattr(Number, _name, _comparing(_name, _COMPARED[_name]))
    elif _name in ("real", "imag"):
        setattr(Number, _name, _part(_name))
    elif _name not in _HARMLESS and callable(getattr(float, _name)):
        setattr(Number, _name, _losing(_name))


def number(value: float, notes: Handling, position: int, absolute: bool = False) -> Number:
    """Return a tracked float for a position among the call's floats."""
    tracked = float.__new__(Number, value)
    tracked.notes, tracked.position, tracked.absolute = notes, position, absolute
    return tracked


def prepare(names: dict[str, Any]) -> None:
    """Replace names in a kernel file's globals so that its host code tracks floats."""
    if ESCAPE in names:
        names[ESCAPE] = handing_on(names[ESCAPE])
    if names.get("math") is math:
        names["math"] = _NOTING_MATH


class _NotingMath(ModuleType):
    """Stands in for the module `math`, which reads a float's value directly; it marks tracked arguments as lost."""

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(math, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **options: Any) -> Any:
            _lose((*args, *options.values()))
            return attribute(*map(plain, args), **{option: plain(value) for option, value in options.items()})

        setattr(self, name, call)
        return call


def _lose(value: Any) -> None:
    """Mark all tracked floats in a value as lost."""
    if type(value) is Number:
        value.lose()
    elif type(value) in (list, tuple):
        for item in value:
            _lose(item)


_NOTING_MATH = _NotingMath("math")


def handing_on(make_argument: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel file's function ESCAPE, so that it may convert a tracked float without losing it.

    The converted value goes into a launch, and `general` finds the float there. Host code must not use it otherwise.
    """

    def make(value: Any, *dtype: Any) -> Any:
        if type(value) is not Number:
            return make_argument(value, *dtype)
        value.notes.handing_on = True
        try:
            return make_argument(value, *dtype)
        finally:
            value.notes.handing_on = False

    return make


def disguised(value: int) -> int:
    """Return an integer in the form in which a launch takes it."""
    return value ^ _DISGUISE


def plain(value: Any) -> Any:
    """Return a launch argument with plain floats in place of tracked ones, without marking them as lost."""
    if type(value) is Number:
        return float.__float__(value)
    return tuple(map(plain, value)) if type(value) is tuple else value


def noted(args: Iterable[Any], kwargs: Mapping[str, Any], notes: Handling) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments with tracked floats, numbered in the order of `looked_at`."""
    floats: list[float] = []

    def of(value: Any) -> Any:
        if type(value) is float:
            floats.append(value)
            return number(value, notes, len(floats) - 1)
        return type(value)([of(v) for v in value]) if type(value) in (list, tuple) else value

    return tuple(map(of, args)), {name: of(value) for name, value in kwargs.items()}


class Watched(NamedTuple):
    """A call that was watched: its shortcut, its floats, and how the wrapper used them."""

    shortcut: Shortcut
    floats: tuple[float, ...]
    notes: Handling


@dataclass(frozen=True)
class General:
    """A shortcut for all calls whose floats fit.

    Attributes:
        shortcut: The launches, with positions for the floats.
        equal_groups: Groups of positions that must have one value.
        fixed: Positions whose value must not change, with that value.
        asked: Comparisons that must have the same outcome.
        seed: The generator's seed if the call draws random numbers; its counter is the last float.
    """

    shortcut: Shortcut
    equal_groups: tuple[tuple[int, ...], ...]
    fixed: tuple[tuple[int, float], ...]
    asked: tuple[Asked, ...]
    seed: int | None = None

    def fits(self, floats: tuple[float, ...]) -> bool:
        """Return True if a call with these floats may use the shortcut."""
        return (
            all(map(math.isfinite, floats))
            and all(_same(floats[i], value) for i, value in self.fixed)
            and all(_same(floats[i], floats[group[0]]) for group in self.equal_groups for i in group[1:])
            and all(one.again(floats) for one in self.asked)
        )


def general(one: Watched, other: Watched) -> General | None:
    """Return a shortcut that also serves calls with other floats, or None if these two calls do not determine one.

    Floats that are equal in both calls stay fixed. Floats that change together form a group, and a launch argument that
    changes in the same way receives the group's value.
    """
    if not all(map(math.isfinite, (*one.floats, *other.floats))):
        return None
    groups: dict[_Kind, list[int]] = {}
    fixed = []
    for i, pair in enumerate(zip(one.floats, other.floats, strict=True)):
        if _same(*pair):
            fixed.append((i, pair[0]))
        else:
            groups.setdefault((type(pair[0]), *pair), []).append(i)
    if (one.notes.lost | other.notes.lost) & {i for group in groups.values() for i in group}:
        return None
    # A run appends the floats after all tensors, so negative numbers select them.
    group_numbers = {kind: group[0] - len(one.floats) for kind, group in groups.items()}
    try:
        launches = [
            _merged(*pair, group_numbers) for pair in zip(one.shortcut.launches, other.shortcut.launches, strict=True)
        ]
    except (_Unlike, ValueError):
        return None
    skeleton = replace(one.shortcut, launches=other.shortcut.launches)
    if skeleton != other.shortcut:
        return None
    comparisons = tuple(dict.fromkeys((*one.notes.asked, *other.notes.asked)))
    candidate = General(
        replace(skeleton, launches=tuple(launches)), tuple(map(tuple, groups.values())), tuple(fixed), comparisons
    )
    return candidate if candidate.fits(one.floats) and candidate.fits(other.floats) else None


class _Unlike(Exception):
    """Raised if two calls differ in more than their floats."""


def _merged(one: KernelLaunch, other: KernelLaunch, places: Mapping[_Kind, int]) -> KernelLaunch:
    """Return a launch whose changing arguments refer to floats. Raise _Unlike if the launches differ in more."""
    if one.kernel is not other.kernel or (one.places, one.tuples) != (other.places, other.tuples):
        raise _Unlike
    tuples = dict(one.tuples)
    merged_places = list(one.places)
    for i, pair in enumerate(zip(one.arguments, other.arguments, strict=True)):
        if FUNCTION < i < ARGUMENTS:
            continue  # launch metadata for hooks; it is the same for each launch of a kernel
        found_place = _position(*pair, tuples.get(i, []), places)
        if isinstance(found_place, list) and found_place:
            tuples[i] = found_place
        elif isinstance(found_place, tuple):
            merged_places.append((i, *found_place))
    return replace(one, places=tuple(merged_places), tuples=tuple(tuples.items()))


def _position(one: Any, other: Any, known: list[Any], places: Mapping[_Kind, int]) -> Any:
    """Return the position of a changing float in an argument as a Place, or None for an equal value.

    For a tuple, return the positions inside it, added to the known ones.
    """
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        inner = dict(known)
        for i, pair in enumerate(zip(one, other, strict=True)):
            inner_place = _position(*pair, inner[i] if isinstance(inner.get(i), list) else [], places)
            if inner_place:
                inner[i] = inner_place
        return list(inner.items())
    if type(one) is type(other) and type(one) in (float, int) and (type(one), one, other) in places:
        return places[type(one), one, other], 0
    if type(one) is not type(other) or not (_same(one, other) if type(one) is float else one == other):
        raise _Unlike
    return None


def _same(one: float, other: float) -> bool:
    """Return True if two floats are equal and, if both are 0, have the same sign."""
    return one == other and math.copysign(1, one) == math.copysign(1, other)
