"""Processes that run programs, one for each side and worker; a process that dies costs one program."""

from __future__ import annotations

import multiprocessing
import os
import queue
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.differential.sides import FAILED, Answer

SECONDS = 300.0  # for one program on one side, including the start-up when all processes import torch at once
_CONTEXT = multiprocessing.get_context("spawn")


def _serve(connection: Connection, side: str, seed: int, directory: str) -> None:
    """Answer requests for programs until the parent closes the connection."""
    os.environ["TRITON_CACHE_DIR"] = os.path.join(directory, "triton")
    tempfile.tempdir = directory
    from benchmarks.differential.sides import runner

    run = runner(side)
    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        connection.send(run(seed, index))


class Worker:
    """A process for one side."""

    def __init__(self, side: str, seed: int, directory: str) -> None:
        self._arguments = side, seed, directory
        self._process: Any = None

    def send(self, index: int) -> None:
        """Ask for a program; start the process if there is none."""
        if self._process is not None and not self._process.is_alive():
            self.close()
        if self._process is None:
            self._connection, theirs = _CONTEXT.Pipe()
            self._process = _CONTEXT.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
            self._process.start()
            theirs.close()
        self._connection.send(index)

    def receive(self) -> Answer:
        """Return the answer; if there is none, end the process and report a failure."""
        try:
            if self._connection.poll(SECONDS):
                answer: Answer = self._connection.recv()
                if answer.status == FAILED and "CUDA" in answer.message:
                    self.close()  # after a CUDA error the process is unusable
                return answer
            message = f"no answer within {SECONDS:.0f} s"
        except (EOFError, ConnectionResetError):
            message = "the process died"
        self.close()
        return Answer(FAILED, message)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process = None


def run_all(
    sides: Sequence[str],
    seed: int,
    indices: Sequence[int],
    workers: int,
    take: Callable[[int, list[Answer]], None],
) -> None:
    """Run programs on each side, and pass the answers on; `workers` programs run at once.

    Args:
        sides: Sides, whose processes work at the same time.
        seed: Seed.
        indices: Indices.
        workers: Processes for each side.
        take: Called with an index and the answers, in the order of `sides`, by one thread at a time.
    """
    pending: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in indices:
        pending.put(index)
    lock, stopped = threading.Lock(), threading.Event()

    def work(directory: str) -> None:
        processes = [Worker(side, seed, directory) for side in sides]
        try:
            while not stopped.is_set():
                try:
                    index = pending.get_nowait()
                except queue.Empty:
                    return
                for process in processes:
                    process.send(index)
                answers = [process.receive() for process in processes]
                with lock:
                    take(index, answers)
        finally:
            for process in processes:
                process.close()

    directory = tempfile.TemporaryDirectory(prefix="differential-", ignore_cleanup_errors=True)
    with directory as path, ThreadPoolExecutor(workers) as pool:
        try:
            for future in as_completed([pool.submit(work, path) for _ in range(workers)]):
                future.result()
        finally:
            stopped.set()  # after an error, the other threads end with the program that they run
