"""What `enable tune` prints."""

from __future__ import annotations

from collections.abc import Iterator

from enable.tune.tuning import ACCEPTED, Tuned

SHOWN = 12  # shapes, those that gain the least and the most


def tuned_lines(found: Tuned) -> str:
    """A head, the gain of each shape, and where to look."""
    return "\n".join(_lines(found))


def _lines(found: Tuned) -> Iterator[str]:
    yield f"{found.overload}  {found.exit}: {found.why}"
    if found.gain is not None:
        yield (
            f"  {found.gain.mean:.3f} times as fast on the geometric mean of {found.shapes} shapes, "
            f"noise {found.gain.noise - 1:.1%}{_beside(found.gain.beside)}"
        )
        ranked = sorted(found.gain.shapes.items(), key=lambda item: item[1])
        half = SHOWN // 2
        for name, value in ranked if len(ranked) <= SHOWN else [*ranked[:half], *ranked[-half:]]:
            yield f"  {value:6.3f}  {name}"
    if found.exit == ACCEPTED:
        yield f"  {found.before_us:.1f} us before, {found.after_us:.1f} us after; in force: {found.kernel}"
    told = f"{found.candidates} candidates"
    if found.used:
        told += f", {found.used['calls']} LLM calls, {found.used['tokens']} tokens"
    yield f"  {told}" + (f"; kept in {found.directory}" if found.directory else "")


def _beside(count: int | None) -> str:
    if count is None:
        return "; whether other processes use the GPU nobody can tell here"
    return f"; {count} other process{'es' * (count != 1)} had the GPU open meanwhile" if count else ""
