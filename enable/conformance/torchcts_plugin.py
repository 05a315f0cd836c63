"""Pytest plugin that runs TorchCTS with the library registered; enable/conformance/torchcts.py starts it.

An item is a test, and its check is the test's TorchCTS folder. A test runs with the registration in force. If it fails,
it runs again while the registration is suspended, and counts as native if it fails there, too.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import sys
import time
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from enable.conformance.answers import BROKEN
from enable.conformance.results import Line, append
from enable.conformance.torchcts import DESK
from enable.conformance.worker import DETAIL, LOST, Desk

MEMORY = 3 << 30  # bytes of GPU memory that a worker may keep between tests, because several workers share a GPU


class Plugin:
    """The state of one pytest worker process."""

    @cached_property
    def desk(self) -> Desk:
        """Return the state shared with the other workers."""
        index, _, directory = os.environ[DESK].partition(":")
        return Desk(Path(directory), int(index))

    @cached_property
    def registration(self) -> Any:
        """Return the registration, made at first use."""
        return self.desk.options.registered()


PLUGIN = Plugin()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make TorchCTS collect in seconds: cache its tables, which do not change, and disable its result files."""
    PLUGIN.desk.note("", phase="starting")
    with contextlib.suppress(ImportError, AttributeError):
        op_metadata: Any = importlib.import_module("torchcts.op_metadata")
        validate = op_metadata._validation_metadata
        validated_once = functools.cache(lambda: validate(None))
        op_metadata._validation_metadata = lambda metadata: (
            validated_once() if metadata is None or metadata is op_metadata.load_op_metadata() else validate(metadata)
        )
    modules: list[Any] = [m for name, m in sys.modules.items() if "torchcts" in name or name.endswith("conftest")]
    for module in modules:
        if hasattr(module, "normalize_torch_version"):
            module.normalize_torch_version = functools.cache(module.normalize_torch_version)
        for name in ("flush_results_to_disk", "empty_cache"):
            if hasattr(module, name):
                setattr(module, name, lambda *a, **k: None)
        if hasattr(module, "_declared_diagnostic_probes_enabled"):
            module._declared_diagnostic_probes_enabled = lambda is_validation: False
    with contextlib.suppress(ImportError):
        import torch.testing._internal.common_utils as common

        common.extract_test_fn = lambda: None  # it walks the stack at every sample


def pytest_runtestloop(session: Any) -> bool:
    """Run the tests that no other worker takes."""
    items = {item.nodeid: item for item in session.items}
    desk = PLUGIN.desk
    registration = PLUGIN.registration
    desk.note("", phase="starting")
    for name in desk.claims(desk.order(list(items))):
        append(desk.results, _tested(items[name], desk, registration))
        _settle(desk)
    desk.note("", phase="finished")
    session.testsfailed = 0
    return True


def _tested(item: Any, desk: Desk, registration: Any) -> Line:
    """Return the line for one test."""
    check, began = item.nodeid.split("torchcts/")[-1].split("/")[0], time.time()
    desk.note(item.nodeid, check, "test", "ours")
    before = Counter(registration.counts.served)
    outcome, detail = _outcome(item)
    served = sorted(Counter(registration.counts.served) - before)
    if BROKEN.search(detail):
        desk.note(item.nodeid, check, "test", "ours", detail[:DETAIL])
        os._exit(LOST)
    if outcome == "failed":
        desk.note(item.nodeid, check, "test", "native")
        with registration.suspended():
            item._initrequest()
            outcome = "native" if _outcome(item)[0] == "failed" else "failed"
    line = Line(item.nodeid, seconds=round(time.time() - began, 2))
    line.count(check, *(() if outcome == "skipped" else ("samples", outcome)), *(["served"] if served else []))
    if outcome == "failed":
        failure = {"check": check, "label": "test", "kind": "test", "detail": detail[:DETAIL], "served": served[:8]}
        line.failures.append(failure)
    return line


def _outcome(item: Any) -> tuple[str, str]:
    """Run a test with its fixtures; return passed, failed or skipped, with the failure's message."""
    from _pytest.runner import runtestprotocol

    outcome, detail = "passed", ""
    for report in runtestprotocol(item, nextitem=None, log=False):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            return "failed", re.sub(r"\s+", " ", crash.message if crash else str(report.longrepr))
        if report.skipped:
            outcome = "skipped"
    return outcome, detail


def _settle(desk: Desk) -> None:
    """Free cached GPU memory that a test left."""
    import torch

    if desk.options.device == "cuda" and torch.cuda.memory_reserved() > MEMORY:
        torch.cuda.empty_cache()
