"""Format the output of `enable tune`."""

from __future__ import annotations

from collections.abc import Iterator

from enable.tune.tuning import ACCEPTED, Tuned

SHOWN = 12  # shapes: half with the least gain, half with the most


def tuned_lines(found: Tuned) -> str:
    """Return a headline, each shape's gain, and the directory with the results."""
    return "\n".join(_lines(found))


def _lines(found: Tuned) -> Iterator[str]:
    """Yield the lines of the output."""
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
    summary = f"{found.candidates} candidates"
    if found.used:
        summary += f", {found.used['calls']} LLM calls, {found.used['tokens']} tokens"
    yield f"  {summary}" + (f"; kept in {found.directory}" if found.directory else "")


def _beside(count: int | None) -> str:
    """Return a note about other processes on the GPU."""
    if count is None:
        return "; whether other processes use the GPU nobody can tell here"
    return f"; {count} other process{'es' * (count != 1)} had the GPU open meanwhile" if count else ""
