"""Versions for the judging layers; a verdict records the versions that can change it.

A developer raises a layer's version if an edit to its files may change a verdict. Otherwise the version is kept:
    python -m verify.judging.layers raise comparison
    python -m verify.judging.layers keep comparison
Both commands store a digest of the meaning of the layer's files (verify/meaning.py) in layers.yaml, and a test
compares it with the files. The meaning of a file includes its program and the names under the traces/facts.yaml
tags that it reads, but not the reasons given there.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

from traces import facts
from traces.overloads import counterpart, may_draw
from traces.subgraphs import is_subgraph
from verify import syntax
from verify.imports import reached
from verify.meaning import digest, meaning_of
from verify.platforms import Platform

ROOT = Path(__file__).parents[2]
NOTED = Path(__file__).with_name("layers.yaml")
# Files of each layer; the first matching pattern decides.
FILES = {
    "interpreter": (
        *("verify/child/accesses.py", "verify/child/folds.py", "verify/child/hints.py", "verify/child/interpreter.py"),
        *(
            "verify/child/interruption.py",
            "verify/child/lanes.py",
            "verify/child/libdevice.py",
            "verify/child/numerics.py",
            "verify/child/quick.py",
        ),
        *("verify/child/races.py", "verify/child/simulator.py", "verify/child/unspecified.py"),
    ),
    "devices": ("verify/child/devices.py",),
    "laws": (
        *("verify/comparison/continuous.py", "verify/comparison/draws.py", "verify/comparison/integers.py"),
        *("verify/comparison/lawful.py", "verify/comparison/laws.py", "verify/cases/philox.py"),
        *("verify/contract/random_state.py", "verify/judging/random_judging.py"),
    ),
    "comparison": ("verify/comparison/*",),
    "cases": ("verify/cases/*", "traces/*"),
    "child": ("verify/child/*",),
    "sandbox": ("verify/sandbox/*",),
    "trial": ("verify/judging/*",),
    "contract": ("verify/contract/*", "verify/*"),
}
MAKING = "making"  # layer that chooses the cases of a whole trial; no verdict on a single case depends on it
_ROOTS = ("verify.judging.judge", "verify.child.zygote", "verify.child.serve")
_TRIAL = "verify.judging.trial"
_ASIDE = "verify/lint"  # lint runs before there is a verdict; reading a kernel file only takes words from it


@dataclass(frozen=True)
class Layer:
    """One layer.

    Attributes:
        version: Version recorded in verdicts.
        digest: Digest over its files' meaning when the version was last raised or kept.
    """

    version: int
    digest: str


@cache
def noted() -> Mapping[str, Layer]:
    """Return the layers as stored in layers.yaml."""
    return {name: Layer(**fields) for name, fields in yaml.safe_load(NOTED.read_text(encoding="utf-8")).items()}


def deciding(root: Path) -> list[Path]:
    """Return the sorted files in the package directory `root` whose meaning a verdict depends on."""
    return reached(root, _ROOTS, _ASIDE)


def making(root: Path) -> list[Path]:
    """Return the sorted further files whose meaning the result of a whole trial depends on."""
    return sorted({*reached(root, [_TRIAL])} - {*deciding(root)})


def layer_of(name: str) -> str:
    """Return a file's layer, given its path from the root; raise LookupError if no layer has it."""
    for layer, patterns in FILES.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return layer
    raise LookupError(f"{name} is in no layer of judging; add it to one of {', '.join(FILES)} in {__file__}")


def digests(root: Path) -> dict[str, str]:
    """Return a digest over the meaning of each layer's files under `root`, as 16 hexadecimal digits."""
    parts: dict[str, list[str]] = {layer: [] for layer in (*FILES, MAKING)}
    tags = facts.read(root / facts.FILE.relative_to(ROOT))
    case_files = deciding(root)
    for path in (*case_files, *making(root)):
        name = path.relative_to(root).as_posix()
        layer = layer_of(name) if path in case_files else MAKING
        meaning, read = _meaning_and_tags(path.read_text(encoding="utf-8"))
        parts[layer] += [name, meaning, *(" ".join((tag, *sorted(facts.names(tags[tag])))) for tag in read)]
    return {layer: digest(texts)[:16] for layer, texts in parts.items()}


@cache
def _meaning_and_tags(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a file's meaning, and the facts.yaml tags that it reads."""
    program = syntax.parse(text)
    return meaning_of(program), tuple(tags_read(program))


def tags_read(program: ast.Module) -> Iterator[str]:
    """Yield the facts.yaml tags that a program reads; raise ValueError if one is not a literal."""
    for node in syntax.walk(program):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tagged":
            yield ast.literal_eval(node.args[0])


def versions(platform: Platform, draws: bool, whole: bool) -> str:
    """Return the versions for the layers that a verdict on a platform depends on.

    Args:
        platform: The platform.
        draws: True if the overload may draw random numbers.
        whole: True for the verdict on a whole trial.
    """
    absent = {"devices" if not platform.run_device else "interpreter"}
    absent |= {name for name, asked in (("laws", draws), (MAKING, whole)) if not asked}
    return ", ".join(f"{name} {layer.version}" for name, layer in noted().items() if name not in absent)


@cache
def draws(overload: str) -> bool:
    """Return True if the laws for random numbers may apply to an overload."""
    return is_subgraph(overload) or may_draw(overload) or counterpart(overload) is not None


def note(action: str, names: Iterable[str], root: Path) -> None:
    """Rewrite the digests for these layers, and increase their versions if `action` is `raise`."""
    now, layers = digests(root), dict(noted())
    for name in names:
        layers[name] = Layer(layers[name].version + (action == "raise"), now[name])
    lines = [f"{name}: {{version: {layer.version}, digest: {layer.digest}}}\n" for name, layer in layers.items()]
    head = "# Versions of the layers of judging; written by: python -m verify.judging.layers (see layers.py)\n"
    NOTED.write_text(head + "".join(lines), encoding="utf-8")


def main(words: list[str]) -> int:
    """Raise or keep layers, and return the exit status."""
    if len(words) < 2 or words[0] not in ("raise", "keep") or not set(words[1:]) <= noted().keys():
        usage = f"usage: python -m verify.judging.layers raise|keep LAYER ...; layers: {', '.join(noted())}"
        sys.stderr.write(f"{usage}\n")
        return 2
    note(words[0], words[1:], ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
