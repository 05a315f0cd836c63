"""Describe a user's chip for prompts: its targets, its limits, and what to write instead of what it lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generate import BLOCKS
from verify import platforms
from verify.limits import ChipLimits
from verify.linking import Block, blocks_in, own_language
from verify.lint.profile import DEFAULT, Profile, load_profile
from verify.platforms import Platform

# What a kernel has to do where a dialect has one of verify.lint.profile.FORBIDDEN.
_FORBIDDEN = {
    "scatter-store": "No store to offsets that were loaded (scatter-store): let each program find what belongs at its"
    " own offsets, by loads with any offsets, and store in order.",
    "half-maths": "No mathematical function of a value in fp16 or bf16 (half-maths): convert with .to(tl.float32)"
    " after the load, and back in the store.",
}


def chip_fields(platform: Platform, modules: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the template chip.md.j2 for a user's platform; empty for one of the toolkit's.

    Args:
        platform: Platform.
        modules: Block modules that the prompt offers.
    """
    if platform.name in platforms.names():
        return {}
    profile, usual = load_profile(platform.lint), load_profile(DEFAULT)
    replaced = own_language(profile.blocks)
    missing = {name for before, now in zip(_lists(usual), _lists(profile), strict=True) for name in before - now}
    stated = {name for name, hint in profile.hints.items() if usual.hints.get(name) != hint}
    hints = {name: profile.instead(name) for name in sorted((missing | stated) - replaced)}
    return {
        "name": platform.name,
        "description": platform.description.rstrip("."),
        "targets": platform.targets,
        "dtypes": profile.dtypes,
        "absent_dtypes": [dtype for dtype in usual.dtypes if dtype not in profile.dtypes],
        "alignment": max(platform.alignment, profile.alignment),
        "limits": [*_limits(platform.limits), *_launching(platform.limits, profile, modules)],
        "forbidden": [_FORBIDDEN[rule] for rule in sorted(profile.forbidden)],
        "hinted": [(name, hint.rstrip(".")) for name, hint in hints.items() if hint],
        "missing": [name for name, hint in hints.items() if not hint],
        "annotations": sorted(usual.kernel.annotations - profile.kernel.annotations),
        "replaced": sorted(replaced),
    }


def _limits(limits: ChipLimits) -> Iterator[str]:
    """Yield a line for each limit that the platform's file states."""
    if limits.grid:
        dimensions = f"{len(limits.grid)} dimension{'s' * (len(limits.grid) > 1)}"
        yield f"A grid has {dimensions} with at most {' x '.join(map(str, limits.grid))} programs."
    if limits.block_elements:
        yield f"A block has at most {limits.block_elements} elements, and so has every intermediate result."
    for name in ("num_warps", "num_stages"):
        if allowed := getattr(limits, name):
            yield f"A launch that states {name} states {_alternatives(allowed)}."
    for function, dtypes in limits.functions.items():
        yield f"{function} takes only {_alternatives(dtypes)}."
    if limits.dot_dtypes:
        yield f"tl.dot takes only {_alternatives(limits.dot_dtypes)}."
    for bound, sizes in (("at least", limits.dot_smallest), ("at most", limits.dot_largest)):
        if sizes:
            yield f"tl.dot takes blocks [M, K] and [K, N] with {bound} M={sizes[0]}, N={sizes[1]} and K={sizes[2]}."
    if limits.dot_precision:
        yield f"A tl.dot of float32 without input_precision computes in {limits.dot_precision}."
    if limits.flush_denormals:
        yield "Denormal numbers of float32 and bfloat16 become 0: scale before a product can be as small, not after it."


def _launching(limits: ChipLimits, profile: Profile, modules: Sequence[str]) -> Iterator[str]:
    """Yield a line on the offered blocks that state launch options which the chip limits."""
    known = blocks_in((*profile.blocks, BLOCKS))
    for option in ("num_warps", "num_stages"):
        if getattr(limits, option):
            stating = [n for module in modules for n in known.module(module) if _states(option, n, known.blocks)]
            if stating:
                yield f"Do not launch with the blocks {', '.join(sorted(stating))}: they may choose another {option}."


def _states(option: str, name: str, blocks: Mapping[str, Block]) -> bool:
    """Return True if a block, or one that it uses, launches a kernel with this option."""
    waiting, reached = [name], {name}
    while waiting:
        block = blocks[waiting.pop()]
        if any(isinstance(node, ast.keyword) and node.arg == option for node in ast.walk(block.node)):
            return True
        new = {used for used in block.uses if used in blocks} - reached
        reached |= new
        waiting += new
    return False


def _alternatives(values: Sequence[Any]) -> str:
    """Return values as `1, 2 or 4`."""
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


def _lists(profile: Profile) -> list[frozenset[str]]:
    """Return the lists of names that a dialect allows in kernels and in wrappers."""
    kernel, host = profile.kernel, profile.host
    lists = (kernel.names, kernel.attributes, kernel.builtins, host.functions, host.values, host.builtins)
    return [frozenset(names) for names in lists]
