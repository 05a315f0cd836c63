"""Format the output of `enable tune`."""

from __future__ import annotations

from collections.abc import Iterator

from enable.tune.tuning import ACCEPTED, Tuned

SHOWN = 12  # shapes: half with the least gain, half with the most


def tuned_lines(tuned: Tuned) -> str:
    """Return a headline, each shape's gain, and the directory with the results."""
    return "\n".join(_lines(tuned))


def _lines(tuned: Tuned) -> Iterator[str]:
    """Yield the lines of the output."""
    yield f"{tuned.overload}  {tuned.exit}: {tuned.why}"
    if tuned.gain is not None:
        yield (
            f"  {tuned.gain.mean:.3f} times as fast on the geometric mean of {tuned.shapes} shapes, "
            f"noise {tuned.gain.noise - 1:.1%}{_beside(tuned.gain.beside)}"
        )
        ranked = sorted(tuned.gain.shapes.items(), key=lambda item: item[1])
        half = SHOWN // 2
        for name, value in ranked if len(ranked) <= SHOWN else [*ranked[:half], *ranked[-half:]]:
            yield f"  {value:6.3f}  {name}"
    if tuned.exit == ACCEPTED:
        yield f"  {tuned.before_us:.1f} us before, {tuned.after_us:.1f} us after; in force: {tuned.kernel}"
    summary = f"{tuned.candidates} candidates"
    if tuned.used:
        summary += f", {tuned.used['calls']} LLM calls, {tuned.used['tokens']} tokens"
    yield f"  {summary}" + (f"; kept in {tuned.directory}" if tuned.directory else "")


def _beside(count: int | None) -> str:
    """Return a note about other processes on the GPU."""
    if count is None:
        return "; whether other processes use the GPU nobody can tell here"
    return f"; {count} other process{'es' * (count != 1)} had the GPU open meanwhile" if count else ""
