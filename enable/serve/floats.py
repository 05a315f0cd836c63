"""Shortcuts of calls that differ in floats, too, such as an optimizer's, which change with each step.

Two calls that differ in nothing but floats, contents and pointers were watched. Where what they launch differs in those
floats alone, handed on as they are, a third is launched with its own, if it answers as they did what the wrapper asked
of its floats: comparisons are noted (`Number`), and a wrapper that computes with a float, or makes another kind of
number of it, has a shortcut for each value. What a random generator counts goes the same way.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from enable.serve.shortcuts import ARGUMENTS, FUNCTION, KernelLaunch, Shortcut

ESCAPE = "number_argument"  # in generate/blocks/types.py: makes of a number what a launch takes
_DISGUISE = 0x555555555555555B  # with which that passes integers on
_COMPARED = {"__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge"}
_HARMLESS = {
    "__new__", "__init__", "__class__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__doc__",
    "__init_subclass__", "__subclasshook__", "__getformat__", "__sizeof__", "__abs__", "__float__", "__bool__",
    "fromhex", "from_number",
}  # fmt: skip


_Kind: TypeAlias = tuple[type, float, float]  # of numbers that were these in the one call and in the other


class Asked(NamedTuple):
    """A comparison of the float at a position, or of its absolute value, with another number, and its outcome."""

    position: int
    absolute: bool
    name: str
    other: float
    outcome: bool

    def again(self, floats: Sequence[float]) -> bool:
        """Whether it has the same outcome with these floats."""
        own = floats[self.position]
        return bool(getattr(operator, self.name)(abs(own) if self.absolute else own, self.other)) is self.outcome


@dataclass
class Handling:
    """What a wrapper did with the floats of a call. lost: the positions of those with which it did something that does
    not show in what it asked."""

    asked: list[Asked] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    handing_on: bool = False  # a float is being made an argument of a launch


class Number(float):
    """A float that notes what is done with it."""

    notes: Handling
    position: int
    absolute: bool

    def lose(self) -> None:
        """Note that what becomes of it is not told."""
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
    def compare(self: Number, other: Any) -> Any:
        outcome = getattr(float, method)(self, other)
        if type(other) is float or (type(other) is int and abs(other) < 1 << 53):
            self.notes.asked.append(Asked(self.position, self.absolute, name, float(other), outcome))
        elif outcome is not NotImplemented:  # with another number that may change
            self.lose()
        return outcome

    return compare


def _losing(method: str) -> Callable[..., Any]:
    def lose(self: Number, *args: Any) -> Any:
        self.lose()
        return getattr(float, method)(self, *args)

    return lose


def _part(name: str) -> property:
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
    """A float at a position among a call's, noted."""
    made = float.__new__(Number, value)
    made.notes, made.position, made.absolute = notes, position, absolute
    return made


def prepare(names: dict[str, Any]) -> None:
    """Have the host code of a kernel file, with these global names, note what it does with floats."""
    if ESCAPE in names:
        names[ESCAPE] = handing_on(names[ESCAPE])
    if names.get("math") is math:
        names["math"] = _NOTING_MATH


class _NotingMath(ModuleType):
    """The module `math`, whose functions read a float's value without asking it: one that they are given is lost."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            _lose((*args, *options.values()))
            return found(*map(plain, args), **{option: plain(value) for option, value in options.items()})

        setattr(self, name, call)
        return call


def _lose(value: Any) -> None:
    if type(value) is Number:
        value.lose()
    elif type(value) in (list, tuple):
        for each in value:
            _lose(each)


_NOTING_MATH = _NotingMath("math")


def handing_on(make_argument: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel's function ESCAPE, which may convert a noted float without losing it.

    What it returns goes into a launch, where the float is found again; nothing else may be made of it.
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
    """An integer as a launch takes it."""
    return value ^ _DISGUISE


def plain(value: Any) -> Any:
    """A launch's argument with floats for what was noted, which is no way to lose them."""
    if type(value) is Number:
        return float.__float__(value)
    return tuple(map(plain, value)) if type(value) is tuple else value


def noted(args: Iterable[Any], kwargs: Mapping[str, Any], notes: Handling) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with their floats noted, in the order of `looked_at`."""
    found: list[float] = []

    def of(value: Any) -> Any:
        if type(value) is float:
            found.append(value)
            return number(value, notes, len(found) - 1)
        return type(value)([of(v) for v in value]) if type(value) in (list, tuple) else value

    return tuple(map(of, args)), {name: of(value) for name, value in kwargs.items()}


class Watched(NamedTuple):
    """A call that was watched: its shortcut, its floats, and what was done with them."""

    shortcut: Shortcut
    floats: tuple[float, ...]
    notes: Handling


@dataclass(frozen=True)
class General:
    """A shortcut of calls whose floats fit. alike: positions that have one value. fixed: what those hold that do not
    change. seed: of calls that draw, that of the generator, whose number is the last float."""

    shortcut: Shortcut
    alike: tuple[tuple[int, ...], ...]
    fixed: tuple[tuple[int, float], ...]
    asked: tuple[Asked, ...]
    seed: int | None = None

    def fits(self, floats: tuple[float, ...]) -> bool:
        """Whether a call with these floats may take it."""
        return (
            all(map(math.isfinite, floats))
            and all(_same(floats[i], value) for i, value in self.fixed)
            and all(_same(floats[i], floats[group[0]]) for group in self.alike for i in group[1:])
            and all(one.again(floats) for one in self.asked)
        )


def general(one: Watched, other: Watched) -> General | None:
    """The shortcut of calls between and beside these two, None where they do not tell it."""
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
    places = {kind: group[0] - len(one.floats) for kind, group in groups.items()}
    try:
        launches = [_merged(*pair, places) for pair in zip(one.shortcut.launches, other.shortcut.launches, strict=True)]
    except (_Unlike, ValueError):
        return None
    whole = replace(one.shortcut, launches=other.shortcut.launches)
    if whole != other.shortcut:
        return None
    asked = tuple(dict.fromkeys((*one.notes.asked, *other.notes.asked)))
    made = General(replace(whole, launches=tuple(launches)), tuple(map(tuple, groups.values())), tuple(fixed), asked)
    return made if made.fits(one.floats) and made.fits(other.floats) else None


class _Unlike(Exception):
    """They differ in more."""


def _merged(one: KernelLaunch, other: KernelLaunch, places: Mapping[_Kind, int]) -> KernelLaunch:
    if one.kernel is not other.kernel or (one.places, one.tuples) != (other.places, other.tuples):
        raise _Unlike
    tuples = dict(one.tuples)
    own = list(one.places)
    for i, pair in enumerate(zip(one.arguments, other.arguments, strict=True)):
        if FUNCTION < i < ARGUMENTS:
            continue  # what hooks are told of each launch, which of a kernel is the same
        place = _place(*pair, tuples.get(i, []), places)
        if isinstance(place, list) and place:
            tuples[i] = place
        elif isinstance(place, tuple):
            own.append((i, *place))
    return replace(one, places=tuple(own), tuples=tuple(tuples.items()))


def _place(one: Any, other: Any, known: list[Any], places: Mapping[_Kind, int]) -> Any:
    """Where a float is among two values of an argument: as a Place, of a tuple with those that are known."""
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        inner = dict(known)
        for i, pair in enumerate(zip(one, other, strict=True)):
            found = _place(*pair, inner[i] if isinstance(inner.get(i), list) else [], places)
            if found:
                inner[i] = found
        return list(inner.items())
    if type(one) is type(other) and type(one) in (float, int) and (type(one), one, other) in places:
        return places[type(one), one, other], 0
    if type(one) is not type(other) or not (_same(one, other) if type(one) is float else one == other):
        raise _Unlike
    return None


def _same(one: float, other: float) -> bool:
    """Equal, and of the same sign if both are 0."""
    return one == other and math.copysign(1, one) == math.copysign(1, other)
