"""`enable run`: trains, and tells step by step and at the end what happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from enable.fuse.substitution import Substitution
from enable.library import JUDGED, NothingVerified, Registration, drawing_on_cpu, select, use
from enable.naming import shown_path
from enable.remedies import nothing_verified, remedy
from enable.serve import precision
from enable.serve.arguments import ELSEWHERE
from enable.serve.decisions import NO_KERNEL, REFUSED
from enable.serve.server import Server
from enable.tables import table
from enable.train.draws import Around, Drawing, Draws, Incomparable, shared
from enable.train.fused import Prepare, compiled_counts, fusing, rows, substituted
from enable.train.step_time import StepTime, measure
from enable.train.training_run import Comparison, Recipe, Step, Stopped, compare_with_cpu, on_device
from enable.workspace import Workspace
from generate.kernel_library import Library
from traces import UserError, jsonable
from traces.facts import tagged
from traces.overloads import bind, kind, name_of

DEVICES = ("sim", "cuda", "xpu")
_INTERPRETED = ("sim", "cpu")  # where kernels run in Triton's interpreter; cpu is for fused training alone
COUNTED = 3  # steps on a GPU in which every call is looked at; this takes as long as the step itself


@dataclass(frozen=True)
class Choice:
    """How to run. fallback: `cpu`, on sim, or None. unverified: whether kernels without verdicts serve. only_judged:
    whether they serve no call unlike all that they were judged on. fused: whether the model is compiled, and its
    subgraphs served by one kernel each."""

    device: str
    compare: bool = False
    fallback: str | None = None
    unverified: bool = False
    only_judged: bool = False
    fused: bool = False

    def __post_init__(self) -> None:
        """Raises UserError."""
        if self.fused and self.device in ("sim", "xpu"):
            raise UserError(
                f"--fused on {self.device}: torch.compile makes graphs for cuda and cpu; choose one of them"
            )
        if self.device == "cpu" and not self.fused:
            raise UserError(f"device 'cpu' is for --fused alone; choose from {', '.join(DEVICES)}")
        if self.device not in (*DEVICES, "cpu"):
            raise UserError(f"unknown device {self.device!r}; choose from {', '.join(DEVICES)}")
        if self.fallback not in (None, "cpu"):
            raise UserError(f"unknown fallback {self.fallback!r}; there is only --fallback cpu")
        if self.unverified and self.only_judged:
            raise UserError("--only-judged asks for verdicts, and --unverified for none; leave one out")
        if self.fallback and self.device != "sim":
            raise UserError(
                f"--fallback is for sim; on {self.device} what the library lacks runs natively, and is counted"
            )


@dataclass
class TrainingReport:
    """What a run came to. comparison: with the CPU, None unless asked for. incomparable: why there is none although it
    was asked for. native: losses of PyTorch's own kernels on the same GPU, and time: of steps there, likewise.
    settings: PyTorch's own for products of float32 there, which a comparison sets aside. stopped: why it ended early,
    in a line. fusions: what became of the subgraphs of a compiled model.
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
        """Indices of the steps that are farther from the CPU's than rounding explains."""
        if self.comparison is None:
            return []
        return [i for i, step in enumerate(self.steps) if not self.comparison.agrees(i, step)]

    @property
    def passed(self) -> bool:
        return not self.stopped and not self.differing

    def curves(self) -> dict[str, list[float]]:
        """Losses by whose they are."""
        found = {f"the library's kernels on {self.choice.device}": [step.loss for step in self.steps]}
        if self.native:
            found[f"PyTorch's own on {self.choice.device}"] = self.native
        if self.comparison is not None:
            found["PyTorch's own on the CPU"] = self.comparison.loss
        return found

    def as_json(self) -> dict[str, Any]:
        """What `enable run --json` prints."""
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
    """Train as asked. tell: given the line of each step as it ends. Raises UserError for what cannot be begun."""
    report, library = TrainingReport(recipe, choice), workspace.library(base)
    gpu = choice.device not in _INTERPRETED
    prepare = None
    if choice.fused:
        prepare = fusing(unverified=choice.unverified, library=library, workspace=workspace.root)
    registered = partial(_registered, recipe, choice, workspace, base, library)
    with ExitStack() as stack:
        around: Around = nullcontext
        if choice.compare and gpu:
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
    report.served = _served(registration, library, compiled_counts() if choice.fused else Counter())
    report.fallbacks = _fallbacks(registration, report, outside)
    if choice.compare and gpu and not report.stopped:
        report.time = measure(recipe, choice.device, registered, library, prepare)
    return report


@contextmanager
def _registered(
    recipe: Recipe, choice: Choice, workspace: Workspace, base: Path | None, library: Library
) -> Iterator[Registration]:
    """The library's kernels in force on the device. Raises UserError if none may be, with what to type."""
    with ExitStack() as stack:
        try:
            if choice.device == "cpu":  # the reference runs there, too: compiled graphs alone are served
                select(None, choice.unverified, library, workspace.root, "cpu")
                nothing = Registration("cpu", Server(lambda overload: None, "cpu"), {}, lambda: None)
                stack.callback(nothing.undo)
                yield nothing
                return
            kernels = use(
                choice.device,
                unverified=choice.unverified,
                only=JUDGED if choice.only_judged else None,
                library=library,
                workspace=workspace.root,
                fallback=choice.fallback,
            )
            registration = stack.enter_context(kernels)
        except NothingVerified as error:
            raise UserError(nothing_verified(recipe, choice.device, workspace, base)) from error
        yield registration


def _draws(recipe: Recipe, device: str, registered: Callable[[], AbstractContextManager[Registration]]) -> Draws:
    """What the training draws on a GPU, which it does alike whenever it is begun; of one that stops, until it does."""
    draws = Draws()
    with registered() as registration, suppress(Stopped):
        for _ in on_device(recipe, device, lambda: draws.recording(registration.counts.served)):
            pass
    return draws


def _train(  # noqa: PLR0913 - what is trained, and what of it is told
    report: TrainingReport,
    registration: Registration,
    around: Around,
    tell: Callable[[str], None],
    lacking: Callable[[], str | None],
    prepare: Prepare | None,
) -> Calls:
    """Train on the device, step by step; returns what was not served on a GPU in the first COUNTED steps.

    lacking: the line for an operator without a kernel, if that is what stopped the training.
    """
    choice, seen = report.choice, Calls(report.choice.device)
    with ExitStack() as counting:
        counting.enter_context(seen if choice.device != "sim" and not choice.fused else nullcontext())
        try:
            for step in on_device(report.recipe, choice.device, around, prepare):
                if not report.steps:
                    tell(_line(_TITLES[: None if report.comparison else _ALONE]))
                report.steps.append(step)
                tell(_line(_cells(report)))
                if len(report.steps) == COUNTED:
                    counting.close()
                    seen.calls -= registration.counts.served
        except Stopped as error:
            report.stopped = lacking() or f"{choice.device} stopped: {error}"
    if len(report.steps) < COUNTED:
        seen.calls -= registration.counts.served
    return seen


_COPIES = tagged("between_devices")


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the calls on a device that would need a kernel, by overload. precisions: what each was computed in."""

    def __init__(self, device: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self.precisions: defaultdict[str, set[str]] = defaultdict(set)
        self._device = device

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if kind(func, bind(func, args, kwargs or {})) in ("compute", "random"):
            tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
            devices = {t.device.type for t in tensors}
            transfer = len(devices) > 1 and name_of(func) in _COPIES
            if self._device in devices and not transfer:
                self.calls[name_of(func)] += 1
                self.precisions[name_of(func)] |= precision.computed_in(func, tensors)
        return result


def _reasons(registration: Registration) -> dict[str, str]:
    """Why overloads were not served, whether or not they were asked for."""
    found = {name: next(iter(reasons)) for name, reasons in registration.counts.unserved.items()}
    return {**found, **registration.left_out}


def _served(registration: Registration, library: Library, compiled: Counter[str]) -> dict[str, dict[str, Any]]:
    """By overload, the most called first. compiled: calls of graphs that were served one by one."""
    found = {}
    for overload, calls in (registration.counts.served + compiled).most_common():
        match = library.match(overload)
        kernel = "composed" if match is None else shown_path(match.kernel.path)
        new = registration.counts.unjudged.get(overload, Counter[str]())
        found[overload] = {"calls": calls, "kernel": kernel, "unjudged": dict(new)}
    return found


def _fallbacks(registration: Registration, report: TrainingReport, outside: Calls) -> dict[str, dict[str, Any]]:
    """What another implementation did: of sim the CPU's, of a GPU PyTorch's own. outside: calls on a GPU that were not
    served, in the first COUNTED steps."""
    counts, reasons, gpu = registration.counts, _reasons(registration), report.choice.device not in _INTERPRETED
    calls = outside.calls
    if report.choice.fallback or gpu or report.choice.fused:
        calls |= Counter({name: found.total() for name, found in _unserved(counts.unserved)})

    def row(name: str, number: int) -> dict[str, Any]:
        in_dtypes = {"precision": ", ".join(sorted(outside.precisions[name]))} if gpu else {}
        return {"calls": number, **in_dtypes, "reason": reasons.get(name, NO_KERNEL)}

    return {name: row(name, n) for name, n in calls.most_common()}


def _unserved(counts: Mapping[str, Counter[str]]) -> Iterator[tuple[str, Counter[str]]]:
    """By overload and reason, without transfers between devices."""
    for name, found in counts.items():
        kept = Counter({r: n for r, n in found.items() if not (name in _COPIES and r == ELSEWHERE)})
        if kept:
            yield name, kept


def _lacking(registration: Registration, report: TrainingReport, workspace: Workspace, base: Path | None) -> str | None:
    """The line for an operator without a kernel that may serve it, if that is what stopped the run."""
    if report.choice.device != "sim" or report.choice.fallback or not registration.counts.unserved:
        return None
    overload = next(reversed(registration.counts.unserved))
    reason = _reasons(registration)[overload]
    if reason == REFUSED:
        return None
    return f"{overload}: {reason}; {remedy(overload, reason, report.recipe, workspace, base)}"


_TITLES = ("step", "loss", "gradients", "seconds", "CPU loss", "allowed +-", "CPU gradients", "allowed +-", "")
_ALONE = 4  # titles that there are without a comparison
_WIDTHS = (4, 12, 12, 8, 12, 10, 13, 10, 0)


def _line(cells: Sequence[str]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=False)).rstrip()


def _cells(report: TrainingReport) -> list[str]:
    """Of the latest step."""
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
    return "-" if value is None else f"{value:.9g}"  # as many digits as float32 has


def summary(report: TrainingReport) -> str:
    """Which implementation served what, and how it went."""
    lines = []
    for title, found, column in (
        ("kernels", report.served, "kernel"),
        ("fallbacks", report.fallbacks, "reason"),
    ):
        if found:
            shown = [c for c in ("calls", "precision", column) if c in next(iter(found.values()))]
            lines += ["", table([{title: name, **{c: row[c] for c in shown}} for name, row in found.items()])]
    if report.choice.fused:
        lines += ["", table(rows(report.fusions)) if report.fusions else "no graph of the model was compiled"]
    served, others = (sum(row["calls"] for row in found.values()) for found in (report.served, report.fallbacks))
    where = "the CPU" if report.choice.device == "sim" else "PyTorch's own kernels"
    lines += [
        "",
        f"{report.recipe.model} on {report.choice.device}: {len(report.steps)} of {report.recipe.steps} steps",
        f"  kernels    {len(report.served)} overloads, {served} calls",
        f"  fallbacks  {len(report.fallbacks)} overloads, {others} calls{f' on {where}' if others else ''}",
    ]
    new = {name: row["unjudged"] for name, row in report.served.items() if row["unjudged"]}
    if new:
        name, told = next(iter(new.items()))
        calls = sum(sum(found.values()) for found in new.values())
        lines.append(f"  unjudged   {calls} calls of {len(new)} overloads, such as {name} ({next(iter(told))})")
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
    """In what PyTorch's own kernels multiplied float32 while they were compared, and in what they do otherwise."""
    own = ", ".join(name for name, value in report.settings.items() if value == precision.TF32)
    text = f"float32 multiplied in full, as on the CPU; PyTorch's settings: TF32 for {own or 'nothing'}"
    still = [name for name, row in report.fallbacks.items() if precision.TF32 in row["precision"]]
    return f"{text}; the step itself turned TF32 on for {', '.join(still)}" if still else text
