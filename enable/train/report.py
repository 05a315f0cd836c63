"""Implement `enable run`: train, print a line per step and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from enable.fuse.substitution import Substitution
from enable.library import JUDGED, NothingVerified, Registration, drawing_on_cpu, select, use
from enable.remedies import nothing_verified, remedy
from enable.serve import precision
from enable.serve.decisions import NO_KERNEL, REFUSED
from enable.serve.server import Server
from enable.tables import table
from enable.train.calls import Calls, reasons_by_overload, served_calls, unserved_calls
from enable.train.draws import Around, Drawing, Draws, Incomparable, shared
from enable.train.fused import Prepare, compiled_counts, fusing, rows, substituted
from enable.train.step_time import StepTime, measure
from enable.train.training_run import Comparison, Recipe, Step, Stopped, compare_with_cpu, on_device
from enable.workspace import Workspace
from generate.kernel_library import Library
from traces import UserError, jsonable
from verify import platforms

_INTERPRETED = ("sim", "cpu")  # devices on which Triton's interpreter runs kernels; cpu is only for fused training
COUNTED = 3  # steps on a GPU in which every call is counted; counting takes as long as the step itself


@dataclass(frozen=True)
class Choice:
    """The options of a run.

    Attributes:
        device: sim, cuda, xpu or a chip's device type, or cpu with `fused`.
        compare: Also train on the CPU and compare.
        fallback: `cpu` on sim or a chip, or None.
        unverified: Let kernels without verdicts serve.
        only_judged: Refuse calls of kinds on which the kernel was never judged.
        fused: Compile the model and serve each fused subgraph by one kernel.
        chip: The platform file of the device, as the user wrote its path; empty for other devices.
    """

    device: str
    compare: bool = False
    fallback: str | None = None
    unverified: bool = False
    only_judged: bool = False
    fused: bool = False
    chip: str = ""

    def __post_init__(self) -> None:
        """Raise UserError for options that contradict each other."""
        if self.fused and self.device not in ("cuda", "cpu"):
            raise UserError(
                f"--fused on {self.device}: torch.compile makes graphs for cuda and cpu; choose one of them"
            )
        if self.device == "cpu" and not self.fused:
            raise UserError("device 'cpu' is for --fused alone; choose from sim, cuda, xpu, or name a chip's device")
        if self.fallback not in (None, "cpu"):
            raise UserError(f"unknown fallback {self.fallback!r}; choose from cpu")
        if self.unverified and self.only_judged:
            raise UserError("--only-judged asks for verdicts, and --unverified for none; leave one out")
        if self.fallback and self.device != "sim" and not self.chip:
            raise UserError(f"--fallback is for sim and chips; {self.device} runs operators without a kernel natively")


@dataclass
class TrainingReport:
    """The outcome of a run.

    Attributes:
        recipe: The training.
        choice: The options.
        comparison: Comparison with the CPU; None unless requested.
        native: Losses with PyTorch's own kernels on the same GPU, for a comparison.
        time: Step times on that GPU, likewise.
        settings: PyTorch's precision settings for float32 products there. A comparison overrides them.
        incomparable: Why a requested comparison is missing.
        steps: Steps that ended.
        served: Calls that kernels served, by overload.
        fallbacks: Calls that another implementation served, by overload.
        stopped: Why the run ended early, in one line.
        fusions: Outcome for each subgraph in a compiled model.
    """

    recipe: Recipe
    choice: Choice
    comparison: Comparison | None = None
    native: list[float] = field(default_factory=list)
    time: StepTime | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    incomparable: str | None = None
    steps: list[Step] = field(default_factory=list)
    served: dict[str, dict[str, Any]] = field(default_factory=dict)
    fallbacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    stopped: str | None = None
    fusions: list[Substitution] = field(default_factory=list)

    @property
    def differing(self) -> list[int]:
        """Return the indices of steps that differ from the CPU's by more than rounding explains."""
        if self.comparison is None:
            return []
        return [i for i, step in enumerate(self.steps) if not self.comparison.agrees(i, step)]

    @property
    def passed(self) -> bool:
        """Return True if the run completed and no step differs."""
        return not self.stopped and not self.differing

    def curves(self) -> dict[str, list[float]]:
        """Return the losses by implementation."""
        losses = {f"the library's kernels on {self.choice.device}": [step.loss for step in self.steps]}
        if self.native:
            losses[f"PyTorch's own on {self.choice.device}"] = self.native
        if self.comparison is not None:
            losses["PyTorch's own on the CPU"] = self.comparison.loss
        return losses

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable run --json` prints."""
        c = self.comparison
        return {
            "model": self.recipe.model,
            "device": self.choice.device,
            "steps": len(self.steps),
            "settings": dict(self.recipe.settings),
            "loss": [s.loss for s in self.steps],
            "reference_loss": c and c.loss,
            "tolerance": c and c.loss_tolerance,
            "native_loss": self.native,
            "step_time": jsonable(self.time),
            "float32_products": dict(self.settings),
            "gradient_norm": [s.gradient_norm for s in self.steps],
            "reference_gradient_norm": c and c.norm,
            "gradient_norm_tolerance": c and c.norm_tolerance,
            "differing_steps": self.differing,
            "not_compared": self.incomparable,
            "seconds": [round(s.seconds, 3) for s in self.steps],
            "served": self.served,
            "fallbacks": self.fallbacks,
            "fusions": jsonable(self.fusions),
            "stopped": self.stopped,
            "passed": self.passed,
        }


def run(
    recipe: Recipe, choice: Choice, workspace: Workspace, base: Path | None, tell: Callable[[str], None]
) -> TrainingReport:
    """Train and report.

    Args:
        recipe: The training.
        choice: The options.
        workspace: Workspace with kernels and verdicts.
        base: Directory of the kernel library, or None for the packaged one.
        tell: Called with each step's line as the step ends.

    Raises:
        UserError: The training cannot begin.
    """
    platform = platforms.load(choice.chip) if choice.chip else None
    report, library = TrainingReport(recipe, choice), workspace.library(base, platform)
    gpu = choice.device not in _INTERPRETED
    prepare = None
    if choice.fused:
        prepare = fusing(unverified=choice.unverified, library=library, workspace=workspace.root)
    registered = partial(_registered, recipe, choice, workspace, base, library)
    with ExitStack() as stack:
        around: Around = nullcontext
        if choice.compare and gpu:
            if not choice.chip:  # a chip has no kernels but the library's
                report.settings = precision.settings()
                stack.enter_context(precision.in_full())
                report.native = [step.loss for step in on_device(recipe, choice.device)]
            drawing: Drawing = _draws(recipe, choice.device, registered).replayed
        registration = stack.enter_context(registered())  # before the model's code can import Triton
        if choice.compare:
            if choice.device == "cpu":
                drawing = lambda: nullcontext(nullcontext)  # noqa: E731 - both draw as PyTorch does there
            elif not gpu:
                around = drawing_on_cpu(library, workspace.root)
                drawing = shared(around)
            try:
                report.comparison = compare_with_cpu(recipe, drawing)
            except Incomparable as error:
                report.incomparable = str(error)
        lacking = partial(_lacking, registration, report, workspace, base)
        outside = _train(report, registration, around, tell, lacking, prepare)
        report.fusions = substituted() if choice.fused else []
    report.served = served_calls(registration, library, compiled_counts() if choice.fused else Counter())
    report.fallbacks = _fallbacks(registration, report, outside)
    if choice.compare and gpu and not choice.chip and not report.stopped:
        report.time = measure(recipe, choice.device, registered, library, prepare)
    return report


@contextmanager
def _registered(
    recipe: Recipe, choice: Choice, workspace: Workspace, base: Path | None, library: Library
) -> Iterator[Registration]:
    """Register the library's kernels on the device. Raise UserError with a remedy if none may serve."""
    with ExitStack() as stack:
        try:
            if choice.device == "cpu":  # the reference also runs on the CPU, so only compiled graphs are served
                select(None, choice.unverified, library, workspace.root, "cpu")
                nothing = Registration("cpu", Server(lambda overload: None, "cpu"), {}, lambda: None)
                stack.callback(nothing.undo)
                yield nothing
                return
            kernels = use(
                choice.chip or choice.device,
                unverified=choice.unverified,
                only=JUDGED if choice.only_judged else None,
                library=library,
                workspace=workspace.root,
                fallback=choice.fallback,
            )
            registration = stack.enter_context(kernels)
        except NothingVerified as error:
            raise UserError(nothing_verified(recipe, choice.device, choice.chip, workspace, base)) from error
        yield registration


def _draws(recipe: Recipe, device: str, registered: Callable[[], AbstractContextManager[Registration]]) -> Draws:
    """Record the random numbers of a training on a GPU; each repetition draws the same ones.

    A training that stops early is recorded up to that step.
    """
    draws = Draws()
    with registered() as registration, suppress(Stopped):
        for _ in on_device(recipe, device, lambda: draws.recording(registration.counts.served)):
            pass
    return draws


def _train(  # noqa: PLR0913 - the training, and its output
    report: TrainingReport,
    registration: Registration,
    around: Around,
    tell: Callable[[str], None],
    lacking: Callable[[str], str | None],
    prepare: Prepare | None,
) -> Calls:
    """Train on the device step by step. Return the calls on a GPU that were not served in the first COUNTED steps.

    `lacking` returns the message about an operator without a kernel if that stopped the training.
    """
    choice, unserved = report.choice, Calls(report.choice.device)
    with ExitStack() as counting:
        counting.enter_context(unserved if choice.device != "sim" and not choice.fused else nullcontext())
        try:
            for step in on_device(report.recipe, choice.device, around, prepare):
                if not report.steps:
                    tell(_line(_TITLES[: None if report.comparison else _ALONE]))
                report.steps.append(step)
                tell(_line(_cells(report)))
                if len(report.steps) == COUNTED:
                    counting.close()
                    unserved.calls -= registration.counts.served
        except Stopped as error:
            report.stopped = lacking(unserved.unfinished) or f"{choice.device} stopped: {error}"
    if len(report.steps) < COUNTED:
        unserved.calls -= registration.counts.served
    return unserved


def _fallbacks(registration: Registration, report: TrainingReport, outside: Calls) -> dict[str, dict[str, Any]]:
    """Return the calls that another implementation answered: the CPU's for sim, PyTorch's own on a GPU.

    `outside` holds the unserved calls on a GPU in the first COUNTED steps.
    """
    counts, reasons = registration.counts, reasons_by_overload(registration)
    gpu = report.choice.device not in _INTERPRETED
    calls = outside.calls
    if report.choice.fallback or gpu or report.choice.fused:
        calls |= Counter({name: counter.total() for name, counter in unserved_calls(counts.unserved)})

    def row(name: str, number: int) -> dict[str, Any]:
        in_dtypes = {"precision": ", ".join(sorted(outside.precisions[name]))} if gpu else {}
        return {"calls": number, **in_dtypes, "reason": reasons.get(name, NO_KERNEL)}

    return {name: row(name, n) for name, n in calls.most_common()}


def _lacking(
    registration: Registration, report: TrainingReport, workspace: Workspace, base: Path | None, unfinished: str
) -> str | None:
    """Return the message about an operator without a usable kernel if that stopped the run, or None.

    `unfinished` is the overload whose call on a chip raised NotImplementedError.
    """
    choice, unserved = report.choice, registration.counts.unserved
    overload = unfinished if choice.chip else next(reversed(unserved)) if unserved else ""
    if choice.fallback or not overload or not (choice.chip or choice.device == "sim"):
        return None
    reason = reasons_by_overload(registration).get(overload, NO_KERNEL)
    if reason == REFUSED:
        return None
    return f"{overload}: {reason}; {remedy(overload, reason, report.recipe, choice.chip, workspace, base)}"


_TITLES = ("step", "loss", "gradients", "seconds", "CPU loss", "allowed +-", "CPU gradients", "allowed +-", "")
_ALONE = 4  # number of titles without a comparison
_WIDTHS = (4, 12, 12, 8, 12, 10, 13, 10, 0)


def _line(cells: Sequence[str]) -> str:
    """Return the cells as one aligned line."""
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=False)).rstrip()


def _cells(report: TrainingReport) -> list[str]:
    """Return the latest step's cells."""
    index = len(report.steps) - 1
    step, c = report.steps[index], report.comparison
    cells = [str(index + 1), _number(step.loss), _number(step.gradient_norm), f"{step.seconds:.1f}"]
    if c is not None:
        allowed = (f"{t:.1e}" if t is not None else "-" for t in (c.loss_tolerance[index], c.norm_tolerance[index]))
        numbers = (_number(c.loss[index]), _number(c.norm[index]))
        cells += [text for pair in zip(numbers, allowed, strict=True) for text in pair]
        cells += [] if c.agrees(index, step) else ["DIFFERS"]
    return cells


def _number(value: float | None) -> str:
    """Format a number with float32's precision."""
    return "-" if value is None else f"{value:.9g}"  # float32 needs 9 digits


def summary(report: TrainingReport) -> str:
    """Describe which implementation served which calls, and how the run ended."""
    lines = []
    for title, rows_by_name, column in (
        ("kernels", report.served, "kernel"),
        ("fallbacks", report.fallbacks, "reason"),
    ):
        if rows_by_name:
            shown = [c for c in ("calls", "precision", column) if c in next(iter(rows_by_name.values()))]
            lines += ["", table([{title: name, **{c: row[c] for c in shown}} for name, row in rows_by_name.items()])]
    if report.choice.fused:
        lines += ["", table(rows(report.fusions)) if report.fusions else "no graph of the model was compiled"]
    served, fallback_calls = (
        sum(row["calls"] for row in rows_by_overload.values()) for rows_by_overload in (report.served, report.fallbacks)
    )
    where = "the CPU" if report.choice.device == "sim" or report.choice.chip else "PyTorch's own kernels"
    lines += [
        "",
        f"{report.recipe.model} on {report.choice.device}: {len(report.steps)} of {report.recipe.steps} steps",
        f"  kernels    {len(report.served)} overloads, {served} calls",
        f"  fallbacks  {len(report.fallbacks)} overloads, {fallback_calls} calls"
        f"{f' on {where}' if fallback_calls else ''}",
    ]
    unjudged = {name: row["unjudged"] for name, row in report.served.items() if row["unjudged"]}
    if unjudged:
        name, unjudged_reasons = next(iter(unjudged.items()))
        calls = sum(sum(reason_counts.values()) for reason_counts in unjudged.values())
        lines.append(
            f"  unjudged   {calls} calls of {len(unjudged)} overloads, such as {name} ({next(iter(unjudged_reasons))})"
        )
    if report.comparison is not None and report.steps:
        differ = f"DIFFER in {len(report.differing)} steps" if report.differing else "are the CPU's, but for rounding"
        lines.append(f"  compared   losses and gradients {differ}")
    if report.incomparable:
        lines.append(f"  compared   no: {report.incomparable}")
    if report.settings:
        lines.append(f"  precision  {_precision(report)}")
    if report.time is not None:
        t = report.time
        native = f"with PyTorch's own kernels {t.native_ms:.2f} ms: {t.ratio:.2f} times as long"
        lines += [
            f"  step time  {t.library_ms:.2f} ms, {native}",
            f"  GPU time   {100 * t.share:.1f} % of it in the library's kernels",
        ]
    return "\n".join(lines)


def _precision(report: TrainingReport) -> str:
    """Describe the precision of float32 products during the comparison and under PyTorch's own settings."""
    tf32_kinds = ", ".join(name for name, value in report.settings.items() if value == precision.TF32)
    text = f"float32 multiplied in full, as on the CPU; PyTorch's settings: TF32 for {tf32_kinds or 'nothing'}"
    with_tf32 = [name for name, row in report.fallbacks.items() if precision.TF32 in row["precision"]]
    return f"{text}; the step itself turned TF32 on for {', '.join(with_tf32)}" if with_tf32 else text
