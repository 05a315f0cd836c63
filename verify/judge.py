"""Judge kernels: compile and run every case in children, compare here, keep the verdicts."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from traces import TraceError
from traces.values import Packed
from verify import wire
from verify.accuracy import summary
from verify.cases import Case, Expected, NoReference, contents, reference, tensor_names
from verify.compare import compare, right_without_kernels, telling
from verify.derive import Plan
from verify.kernel_file import KernelFile
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform
from verify.sandbox import COMPILE, EXECUTE, Child, ChildDied, Zygote
from verify.verdicts import VerdictStore

MAX_DEATHS = 2  # crashes and timeouts of one job after which its other cases are skipped


Problem: TypeAlias = tuple[Outcome, str, str]  # outcome, one line, report


class MalformedReply(Exception):
    """A child sent what no child of ours sends."""


@dataclass(frozen=True)
class Reply:
    """A child's word on one case: never proof, but enough against a kernel.

    status: ok or error, with the error's text. operators: what the wrapper called that it must not. kernels: what was
    launched. refused: the compiler's log. outside: whether memory just outside an argument was written.
    """

    status: str
    text: str = ""
    operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    refused: str = ""
    outside: bool = False

    @classmethod
    def read(cls, header: dict[str, Any]) -> Reply:
        """Raises MalformedReply unless every field is of its kind."""
        operators, kernels = header.get("operators", []), header.get("kernels", [])
        lists = isinstance(operators, list) and isinstance(kernels, list)
        if not lists or not all(isinstance(name, str) for name in (*operators, *kernels)):
            raise MalformedReply("operators and kernels are not lists of names")
        status, text, refused = (header.get(k, "") for k in ("status", "text", "refused"))
        if status not in ("ok", "error") or not isinstance(text, str) or not isinstance(refused, str):
            raise MalformedReply(f"status is {str(status)[:80]!r}")
        return cls(status, text, tuple(operators), tuple(kernels), refused, header.get("outside") is not False)


class JudgeClosed(Exception):
    """The judge was closed, by Ctrl-C for one, while a job was still at work."""


@dataclass(frozen=True)
class Job:
    """Cases of one overload for one kernel. copy: the library's `aten::copy_`, where the plan may need it."""

    plan: Plan
    kernel: KernelFile
    cases: tuple[Case, ...]
    copy: KernelFile | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        """What takes part: the base overload, and the sha256 of each kernel file."""
        return (self.plan.base, self.kernel.sha256, *((self.copy.sha256,) if self.copy else ()))


class Judge:
    """A context manager that holds the children. `workers` jobs are judged at once (default: the cores, at most 8)."""

    def __init__(self, platform: Platform, store: VerdictStore, workers: int | None = None) -> None:
        self.platform = platform
        self._store = store
        self._workers = workers or min(8, os.cpu_count() or 1)
        self._idle: queue.SimpleQueue[dict[str, Zygote]] = queue.SimpleQueue()
        self._started: list[Zygote] = []
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every child; a worker that is waiting for one gives up."""
        with self._lock:
            self._closed = True
            for zygote in self._started:
                zygote.close()

    def judge(
        self, jobs: Iterable[Job], on_verdict: Callable[[Job, Verdict], None] = lambda job, verdict: None
    ) -> dict[tuple[str, str], Verdict]:
        """Verdicts by (overload, case id). `on_verdict` is called as each arrives, from the worker's thread."""
        verdicts: dict[tuple[str, str], Verdict] = {}

        def run(job: Job) -> None:
            for verdict in self._judge_job(job):
                verdicts[job.plan.overload, verdict.case] = verdict
                on_verdict(job, verdict)

        with ThreadPoolExecutor(self._workers) as pool:
            running = [pool.submit(run, job) for job in jobs]
            try:
                for future in as_completed(running):
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.close()  # so that no worker goes on waiting for its child
                raise
        return verdicts

    def _judge_job(self, job: Job) -> Iterable[Verdict]:
        fresh: list[Case] = []
        for case in job.cases:
            known = self._store.get(self._identity(job, case))
            if known is None:
                fresh.append(case)
            else:
                yield known
        if not fresh:
            return
        zygotes = self._borrow()
        try:
            with _Run(job, self.platform, zygotes) as run:
                for case in fresh:
                    started = time.monotonic()
                    verdict = run.judge(case)
                    if run.lasting(verdict):
                        self._store.put(self._identity(job, case), verdict, time.monotonic() - started)
                    yield verdict
        finally:
            self._idle.put(zygotes)

    def _identity(self, job: Job, case: Case) -> tuple[str, ...]:
        return VerdictStore.identity(job.kernels, job.plan.overload, case.id, self.platform)

    def _borrow(self) -> dict[str, Zygote]:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return {mode: self._start(mode) for mode in (COMPILE, EXECUTE)}

    def _start(self, mode: str) -> Zygote:
        zygote = Zygote(mode)
        with self._lock:
            if not self._closed:
                self._started.append(zygote)
                return zygote
        zygote.close()
        raise JudgeClosed("the judge was closed while a child started")


class _Run:
    """The two children of one job, started when first needed and again after one has died."""

    def __init__(self, job: Job, platform: Platform, zygotes: dict[str, Zygote]) -> None:
        self._job = job
        self._platform = platform
        self._zygotes = zygotes
        self._children: dict[str, tuple[Child, ExitStack]] = {}
        self._deaths = 0
        self._chance = False

    def lasting(self, verdict: Verdict) -> bool:
        """Whether the verdict says something of the kernel for good: not of a busy machine, or of what was not run."""
        return verdict.outcome is not Outcome.SKIPPED and not self._chance

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for _, stack in self._children.values():
            stack.close()

    def judge(self, case: Case) -> Verdict:
        """One case: reference, compile, execute, compare. Raises TraceError on a damaged trace."""
        self._chance = False
        if self._deaths >= MAX_DEATHS:
            return Verdict(case.id, Outcome.SKIPPED, f"not run: {self._deaths} earlier cases crashed or hung")
        try:
            expected = reference(case)
        except NoReference as error:
            return Verdict(case.id, Outcome.SKIPPED, str(error))
        unlisted = _unlisted_dtypes(self._job.kernel, expected.before)
        if unlisted:
            return Verdict(case.id, Outcome.SKIPPED, f"the kernel's DTYPES do not list {', '.join(unlisted)}")
        try:
            problem = self._problem(expected)
        except ChildDied as death:
            self._deaths += 1
            self._chance = not death.keep
            problem = Outcome.TIMEOUT if death.timeout else Outcome.CRASH, death.how, ""
        except (TraceError, MalformedReply) as error:
            problem = Outcome.WRONG, f"the answer is malformed: {error}", ""
        return self._verdict(case, *problem, expected) if problem else Verdict(case.id, Outcome.PASS)

    def _problem(self, expected: Expected) -> Problem | None:
        """What is wrong with the kernel on this case, or None. Raises ChildDied, MalformedReply, TraceError."""
        overload = self._job.plan.overload
        compiled, ghost = self._ask(COMPILE, expected.before, self._platform.compile_seconds)
        if compiled.refused:
            return Outcome.COMPILE_ERROR, _headline(compiled.refused), compiled.refused
        if compiled.operators:
            return _called(compiled)
        if ghost is not None and right_without_kernels(overload, expected, ghost):
            return Outcome.CHEAT, "the result is right although no kernel ran: it was computed elsewhere", ""
        executed, got = self._ask(EXECUTE, expected.before, self._platform.execute_seconds)
        if executed.operators:
            return _called(executed)
        if got is None:
            return Outcome.RUNTIME_ERROR, executed.text.split("\n")[0], executed.text
        uncompiled = sorted(set(executed.kernels) - set(compiled.kernels))
        if uncompiled:
            names = ", ".join(uncompiled)
            why = f" ({compiled.text.splitlines()[0]})" if compiled.text else ""
            return Outcome.COMPILE_ERROR, f"{names} was not reached when kernels only compile{why}", ""
        if not executed.kernels and telling(overload, expected):
            return Outcome.CHEAT, "no kernel was launched", ""
        if executed.outside:
            return Outcome.WRONG, "memory just outside an argument was written", ""
        mismatch = compare(overload, expected, got)
        return (Outcome.WRONG, mismatch.detail, mismatch.report) if mismatch else None

    def _ask(self, mode: str, packed: Packed, seconds: float) -> tuple[Reply, Packed | None]:
        """A child's reply, and what the wrapper returned; None if it raised."""
        try:
            header, buffers = self._child(mode).ask(packed, seconds)
        except ChildDied as death:
            self._drop(mode)
            raise ChildDied(f"{mode}: {death.how}", death.timeout, death.keep) from death
        reply = Reply.read(header)
        return reply, wire.packed_of(header, buffers, "answer") if reply.status == "ok" else None

    def _verdict(self, case: Case, outcome: Outcome, detail: str, report: str, expected: Expected) -> Verdict:
        text = f"{report or detail}\n\n{inputs_report(expected.before)}"
        return Verdict(case.id, outcome, detail[:300], text)

    def _child(self, mode: str) -> Child:
        if mode not in self._children:
            stack = ExitStack()
            child = stack.enter_context(self._zygotes[mode].fork(self._header()))
            self._children[mode] = (child, stack)
        return self._children[mode][0]

    def _drop(self, mode: str) -> None:
        _, stack = self._children.pop(mode)
        stack.close()

    def _header(self) -> dict[str, Any]:
        sources = {"kernel": self._job.kernel.source}
        if self._job.copy is not None:
            sources["copy"] = self._job.copy.source
        return {
            "plan": asdict(self._job.plan),
            "sources": sources,
            "takes_out": self._job.kernel.takes_out,
            "targets": [asdict(t) for t in self._platform.targets],
            "memory_bytes": self._platform.memory_bytes,
        }


def _called(reply: Reply) -> Problem:
    called = ", ".join(dict.fromkeys(reply.operators))
    return Outcome.CHEAT, f"the wrapper called {called}; only allocation and views are allowed", ""


def _headline(log: str) -> str:
    """A compiler's log in a line: Triton puts the place first, the source in between and the message last."""
    lines = [line.strip() for line in log.split("\n") if line.strip()] or ["no log"]
    return " ".join(dict.fromkeys((lines[0], lines[-1])))


def _unlisted_dtypes(kernel: KernelFile, packed: Packed) -> list[str]:
    """Floating dtypes of the case that the kernel does not claim to serve."""
    floating = {ref.dtype for ref in packed.tensors if "float" in ref.dtype}
    return sorted(floating - set(kernel.dtypes))


def inputs_report(packed: Packed) -> str:
    """The arguments of a case: scalars as they are, tensors summarised."""
    summaries = {
        name: f"{summary(contents(packed, i))} stride {list(packed.tensors[i].stride)}"
        for i, name in enumerate(tensor_names(packed.tree))
    }
    lines = ["arguments of this case:"]
    for name, value in packed.tree.items():
        if not _holds_tensor(value):
            lines.append(f"  {name} = {_scalar(value)}")
    lines += [f"  {name}: {text}" for name, text in summaries.items()]
    return "\n".join(lines)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        return any(k in ("tensor", "sparse_coo") or _holds_tensor(v) for k, v in value.items())
    return isinstance(value, list) and any(map(_holds_tensor, value))


def _scalar(value: Any) -> str:
    """A JSON-encoded scalar as Python would write it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, dict):
        tag, content = next(iter(value.items()))
        if tag == "float":
            return repr(float.fromhex(content))
        return f"torch.{content}" if tag in ("dtype", "layout", "memory_format") else str(content)
    return repr(value)
