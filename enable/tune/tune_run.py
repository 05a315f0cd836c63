"""Run `enable tune`: open a session and a timer, then search by language model or by settings."""

from __future__ import annotations

from pathlib import Path

from enable.cover.session import Session
from enable.tune.settings import chosen
from enable.tune.timing import NO_TIMES, compiled_for, timer_for
from enable.tune.tuning import SKILLS, TuneChoice, Tuned, TunedOperator, searched
from enable.workspace import Workspace
from generate.journal import slug
from generate.kernel_search.advice import compiled, explain_times
from generate.kernel_search.measurement import ROUNDS
from generate.kernel_search.search import TimingFailed
from generate.kernel_search.skills import SkillStore
from traces import UserError
from traces.overloads import resolve
from verify import platforms

NVIDIA, COMPILED_FOR = "cuda", "sm_90"  # the target for which kernels are compiled without a GPU


def tune(workspace: Workspace, base: Path | None, platform: str, choice: TuneChoice) -> Tuned:
    """Tune one kernel. Raise UserError for problems that the user must fix first."""
    workspace.open_trace(choice.trace)
    times_path = workspace.root / "tune" / f"{slug(choice.overload)}.times.jsonl"
    with Session(workspace, base, platform) as session:
        resolve(choice.overload)
        if choice.model and choice.skills:
            SkillStore(workspace.root / SKILLS)  # report an unreadable store before anything is judged
        with timer_for(session.platform, choice.times, times_path) as timer:
            tuned = TunedOperator(session, choice)
            try:
                return searched(tuned, timer) if choice.model else chosen(tuned, timer)
            except TimingFailed as error:
                raise UserError(f"{choice.overload}: {error}") from error


def explain(workspace: Workspace, base: Path | None, platform: str, choice: TuneChoice) -> str:
    """Explain why the current kernel is slow; without a GPU, report its resources.

    Raises:
        UserError: There is nothing to explain, or timing failed.
    """
    with Session(workspace, base, platform) as session:
        operator = TunedOperator(session, choice)
        kernel = operator.timed_kernel(operator.kernel.written)
        if choice.times is None and not session.platform.run_device:
            target = next(t for t in platforms.load(NVIDIA).targets if f"sm_{t.arch}" == COMPILED_FOR)
            launches = compiled_for(target, [kernel], operator.shapes)
            head = f"Compiled for {COMPILED_FOR}; not timed: on {session.platform.name} {NO_TIMES}.\n\n"
            return head + compiled(COMPILED_FOR, operator.shapes, [of[0] for of in launches])
        with timer_for(session.platform, choice.times, None) as timer:
            measured = timer([kernel], operator.shapes, ROUNDS)
        times = [measured.times[0][shape.name] for shape in operator.shapes]
        return explain_times(measured.device, operator.shapes, times, measured.profile)
