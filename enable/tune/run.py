"""One run of `enable tune`: a session, a timer, and either way of finding something faster."""

from __future__ import annotations

from pathlib import Path

from enable.cover.session import Session
from enable.tune.settings import chosen
from enable.tune.timing import recorded_or_gpu
from enable.tune.tuning import SKILLS, TuneChoice, Tuned, TunedOperator, searched
from enable.workspace import Workspace
from generate.journal import slug
from generate.tuning.search import TimingFailed
from generate.tuning.skills import SkillStore
from traces import UserError


def tune(workspace: Workspace, base: Path | None, platform: str, choice: TuneChoice) -> Tuned:
    """Raises UserError for what the user has to mend first."""
    workspace.open_trace(choice.trace)
    with Session(workspace, base, platform) as session:
        kept = workspace.root / "tune" / f"{slug(choice.overload)}.times.jsonl"
        timer = recorded_or_gpu(session.platform, choice.times, kept)
        if choice.model and choice.skills:
            SkillStore(workspace.root / SKILLS)  # one that cannot be read is told before anything is judged
        tuning = TunedOperator(session, choice)
        try:
            return searched(tuning, timer) if choice.model else chosen(tuning, timer)
        except TimingFailed as error:
            raise UserError(f"{choice.overload}: {error}") from error
