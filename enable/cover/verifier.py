"""Run `enable verify` on one file or operator, on the whole library, or on a corpus of bad and honest kernels."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from enable.cover.needs import is_known
from enable.cover.recorded import recorded
from enable.cover.verification import VerifyRequest, path_of, verify_candidate
from enable.naming import full
from enable.progress import show_progress, track
from enable.subgraphs import check_known
from enable.workspace import Workspace
from generate import BLOCKS
from generate.kernel_library import Library, Match
from traces import UserError
from traces.errors import read_problem
from traces.program import program_label
from traces.subgraphs import is_subgraph
from verify import platforms
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.debugging.sanitizing import check_sanitizer
from verify.judging.candidate import read_candidate
from verify.judging.judge import Judge
from verify.judging.stages import TrialResult
from verify.lint import load_profile
from verify.lint.profile import ANY_FILE
from verify.outcome import Outcome


class Verifier:
    """A context manager around one judge that verifies kernels."""

    def __init__(
        self,
        workspace: Path,
        library: Path | None,
        platform: str,
        profile: str | None,
        sandbox: str,
        sanitize: bool = False,
    ) -> None:
        """Load the platform and its lint profiles.

        Args:
            workspace: Directory of the workspace.
            library: Directory of the base library, or None for the packaged one.
            platform: Platform name or file.
            profile: Name of the dialect for lint; by default the platform's for contract kernel files, and ANY_FILE
                for other files.
            sandbox: Sandbox level.
            sanitize: Check that compute-sanitizer works on the platform.

        Raises:
            UserError: The platform, profile or sandbox is unknown, or nothing can be sanitized there.
        """
        self._workspace = Workspace(workspace)
        self._base = library
        loaded_platform = platforms.load(platform)
        chosen, of_platform = load_profile(profile or ANY_FILE), load_profile(loaded_platform.lint)
        self._profile = (chosen if chosen.blocks else chosen.of_platform(of_platform)).with_blocks(BLOCKS)
        self._contract_profile = self._profile if profile else of_platform.with_blocks(BLOCKS)
        if sanitize:
            check_sanitizer(loaded_platform)
        self._platform = replace(loaded_platform, alignment=max(loaded_platform.alignment, self._profile.alignment))
        self._sandbox = sandbox
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        store = self._workspace.verdicts()
        self._stack.callback(store.close)
        judge = Judge(self._platform, store, sandbox=self._sandbox, cache=self._workspace.compiled)
        self.judge = self._stack.enter_context(judge)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def verify(self, target: str, operator: str | None, request: VerifyRequest) -> TrialResult:
        """Judge a file, standard input, or the library's kernel for an operator. Raise UserError if there is none."""
        if target == "-":
            return self._text(sys.stdin.read(), Path("stdin"), operator, request)
        path = path_of(target)
        if path is None:
            overload = full(target)
            library = self._library()
            if is_subgraph(overload):
                check_known(self._workspace.fusions(), overload)
            try:
                match = library.match(overload)
            except UserError as error:
                if Path(target).is_dir():
                    problem = "is a directory; name a kernel file, an operator, or --all for the library"
                    raise UserError(f"{target}: {problem}") from error
                raise
            if match is None:
                hint = self._unserved(overload)
                raise UserError(f"{target}: no such file, and no kernel of the library serves it; {hint}")
            served_match = None if operator else match
            return self._file(match.kernel.path, operator or overload, request, match.kernel, served_match)
        return self._file(path, operator, request)

    def _unserved(self, overload: str) -> str:
        """Return a suggestion for an operator without a kernel."""
        if is_subgraph(overload):
            return f"have one written: {self._workspace.command('refine', '--op', overload)}"
        if is_known(overload):
            return f"write one: {self._workspace.command('new', overload)}"
        return f"see: {self._workspace.command('library', 'table')}"

    def verify_library(self, request: VerifyRequest) -> list[TrialResult]:
        """Judge every kernel file in the library on all its overloads."""
        kernels = sorted(self._library(), key=lambda kernel: kernel.path)
        request = replace(request, every=True)
        self._tell_unread(request, None)
        with show_progress("verify --all", len(kernels)) as progress:

            def one(kernel: KernelFile) -> TrialResult:
                result = self._file(kernel.path, None, request, kernel)
                progress.step(kernel.path.stem)
                return result

            return self.judge.each(one, kernels)

    def verify_fusions(self, overloads: Sequence[str], request: VerifyRequest) -> list[TrialResult]:
        """Judge the kernels of these subgraphs in order; subgraphs without a kernel are skipped."""
        library, request = self._library(), replace(request, every=True)
        matches = {overload: match for overload in overloads if (match := library.match(overload)) is not None}
        with show_progress("verify fused kernels", len(matches)) as progress:

            def one(overload: str) -> TrialResult:
                match = matches[overload]
                result = self._file(match.kernel.path, overload, request, match.kernel, match)
                progress.step(overload)
                return result

            return self.judge.each(one, matches)

    def report(self, corpus: Path, request: VerifyRequest) -> Table:
        """Judge every file of a corpus on cases that are the same everywhere. Raise UserError if there is none."""
        table, request = Table(), replace(request, sources=tuple(s for s in request.sources if s != "traces"))
        for kind, paths in corpus_files(corpus).items():
            for path in track(paths, len(paths), f"verify {kind} files"):
                family = _header(path, "family") or "?" if kind == "bad" else "honest"
                table.add(family, self._file(path, None, request))
        return table

    def _library(self) -> Library:
        """Return the workspace's library for the platform."""
        return self._workspace.library(self._base, self._platform)

    def _file(
        self,
        path: Path,
        operator: str | None,
        request: VerifyRequest,
        kernel: KernelFile | None = None,
        match: Match | None = None,
    ) -> TrialResult:
        """Judge a file; `kernel` is the library's entry for it, and `match` is how it serves the operator."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read ({read_problem(error)}); name a file or an operator") from error
        return self._text(text, path, operator, request, kernel, match)

    def _text(
        self,
        text: str,
        path: Path,
        operator: str | None,
        request: VerifyRequest,
        kernel: KernelFile | None = None,
        match: Match | None = None,
    ) -> TrialResult:
        """Judge a source text."""
        calls = [o for o, _ in kernel.callees] if kernel is not None else []
        profiles = (profile.with_calls(calls) for profile in (self._profile, self._contract_profile))
        try:
            candidate = read_candidate(text, path, next(profiles), operator, next(profiles))
        except KernelFileError as error:
            return TrialResult(
                path.name, Outcome.COMPILE_ERROR, "lint", "contract", str(error), sandbox=self.judge.sandbox
            )
        if kernel is not None and candidate.kernel is not None:
            linked = replace(candidate.kernel, callees=kernel.callees)
            candidate = replace(candidate, kernel=linked)
        if match is not None:
            candidate = replace(candidate, plan=match.plan, copy=match.copy)
        if not request.every:
            self._tell_unread(request, frozenset(candidate.overloads))
        return verify_candidate(candidate, request, self.judge, self._workspace)

    def _tell_unread(self, request: VerifyRequest, only: frozenset[str] | None) -> None:
        """Write the names of unreadable traces to stderr."""
        for name, why in recorded(self._workspace, only).unread.items() if "traces" in request.sources else ():
            sys.stderr.write(f"{program_label()}: the trace {name} is left out: {why}\n")


def corpus_files(corpus: Path) -> dict[str, list[Path]]:
    """Return the files of a corpus, `bad` and `honest`. Raise UserError if there are none."""
    files = {kind: sorted((corpus / kind).glob("*.py")) for kind in ("bad", "honest")}
    if not any(files.values()):
        raise UserError(f"{corpus}: no bad/*.py and no honest/*.py there; name the directory of a corpus")
    return files


@dataclass
class Table:
    """The results for a corpus by family of bad kernels; honest files form one more family."""

    rows: dict[str, list[TrialResult]] = field(default_factory=lambda: defaultdict(list))

    def add(self, family: str, result: TrialResult) -> None:
        """Add a file's result."""
        self.rows[family].append(result)

    @property
    def sound(self) -> bool:
        """Return True if every honest file passes and no bad one does."""
        return not self.misjudged

    @property
    def misjudged(self) -> list[tuple[str, TrialResult]]:
        """Return the honest files that do not pass and the bad ones that were not rejected."""
        pairs = []
        for family, findings in self.rows.items():
            for result in findings:
                passed = result.outcome is Outcome.PASS
                if passed != (family == "honest") or result.outcome is Outcome.SKIPPED:
                    pairs.append((family, result))
        return pairs

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "sound": self.sound,
            "misjudged": [result.name for _, result in self.misjudged],
            "files": [{"family": family, **vars(f)} for family, findings in self.rows.items() for f in findings],
        }

    def text(self) -> str:
        """Return a row per family: files, passed files, and the layers that rejected files."""
        lines = [f"{'family':8} {'files':>5} {'passed':>6}  layers that spoke"]
        for family in sorted(self.rows):
            findings = self.rows[family]
            layers = Counter(f.layer for f in findings if f.layer)
            passed = sum(f.outcome is Outcome.PASS for f in findings)
            details = ", ".join(f"{layer} {n}" for layer, n in layers.most_common())
            lines.append(f"{family:8} {len(findings):5} {passed:6}  {details}")
        bad = [f for family, findings in self.rows.items() if family != "honest" for f in findings]
        rejected = sum(f.outcome not in (Outcome.PASS, Outcome.SKIPPED) for f in bad)
        honest = self.rows.get("honest", [])
        passed = sum(f.outcome is Outcome.PASS for f in honest)
        details = f"{rejected} of {len(bad)} bad kernels rejected, {passed} of {len(honest)} honest ones pass"
        lines.append(f"\n{details}; --seed {(bad + honest)[0].seed}")
        lines += [f"  misjudged: {f.name} ({family}): {f.outcome} {f.detail}" for family, f in self.misjudged]
        return "\n".join(lines)


def _header(path: Path, name: str) -> str | None:
    """Return a header comment's value from a file's first 12 lines, or None."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[:12]:
        if line.startswith(f"# {name}:"):
            return line.partition(":")[2].strip()
    return None
