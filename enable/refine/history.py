"""List the kernels in force and their versions, for `enable library list`, `history` and `show`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from enable.naming import near, shown_path
from enable.tables import table
from enable.workspace import Workspace
from generate.kernel_library import Library
from generate.versions import BASE_LIBRARY, BY_HAND, Version, Versions, origin
from traces import UserError
from traces.overloads import resolve
from traces.program import program_name
from verify.contract.derive import functional_base
from verify.contract.kernel_file import KernelFile

_SHA = 12  # number of hex digits in tables


class History:
    """One workspace's kernels and versions, on top of a base library."""

    def __init__(self, workspace: Workspace, base: Path | None) -> None:
        """Load the library with `base` as the base library, by default the packaged one.

        Raises:
            UserError: If the library is broken.
        """
        self.library: Library = workspace.library(base)
        self.versions = Versions(workspace.kernels)

    def find(self, operator: str) -> tuple[str, str]:
        """Return the group and name of the kernel that serves an operator, or that served it in an earlier version.

        Raises:
            UserError: If there is no such kernel.
        """
        resolve(operator)
        served = {operator, functional_base(operator)}
        for group, name in self.versions.names():
            if any(served.intersection(v.overloads) for v in self.versions.list(group, name)):
                return group, name
        match = self.library.match(operator)
        if match is None:
            like = near(operator, {o for kernel in self.library for o in kernel.overloads})
            raise UserError(
                f"no kernel serves {operator} or did{like and f' (near it: {like})'}; "
                f"see: {program_name()} library list"
            )
        return match.kernel.path.parent.name, match.kernel.path.stem

    def origin(self, path: Path) -> str:
        """Return in a word or two where the kernel in force at a path comes from."""
        return origin(path) if path.is_relative_to(self.versions.root) else BASE_LIBRARY

    def kernels(self) -> list[dict[str, Any]]:
        """Return all kernels in force as `enable library list --json` prints them, the workspace's own ones first."""
        rows = [self._kernel(kernel) for kernel in self.library]
        return sorted(rows, key=lambda row: (not row["accepted"], row["kernel"]))

    def _kernel(self, kernel: KernelFile) -> dict[str, Any]:
        group, name = kernel.path.parent.name, kernel.path.stem
        accepted = kernel.path.is_relative_to(self.versions.root)
        origin = self.origin(kernel.path)
        version = self.versions.current(group, name) if accepted else None
        return {
            "kernel": f"{group}/{name}",
            "overloads": list(kernel.overloads),
            "calls": list(kernel.calls),
            "file": shown_path(kernel.path),
            "sha256": _sha256(kernel.path),
            "accepted": accepted,
            "origin": origin,
            "version": version.number if version else None,
            "few_cases": (version.provenance.get("few_cases") or {}) if version else {},
            "when": version.when if version else None,
        }

    def of(self, operator: str) -> dict[str, Any]:
        """Return all versions for an operator's kernel, as `enable library history --json` prints them.

        Raises:
            UserError: If no kernel serves the operator or served it earlier.
        """
        group, name = self.find(operator)
        path, current = self.versions.path(group, name), self.versions.current(group, name)
        match = self.library.match(operator)
        return {
            "overload": operator,
            "kernel": f"{group}/{name}",
            "in_force": current.number if current else None if path.is_file() else 0,
            "origin": self.origin(match.kernel.path) if match else None,
            "sha256": _sha256(match.kernel.path) if match else None,
            "versions": [asdict(v) for v in self.versions.list(group, name)],
        }

    def source(self, operator: str, number: int | None) -> str:
        """Return a version's source, by default that of the kernel in force.

        Raises:
            UserError: If the version is the base library's kernel, or if there is no such version.
        """
        group, name = self.find(operator)
        text = self.versions.source(group, name, number) if number is not None else None
        match = self.library.match(operator)
        if text is None and number is None and match is not None:
            text = match.kernel.written
        if text is None:
            raise UserError(f"version {number or 0} of {group}/{name} is the base library's kernel; see it there")
        return text


def _sha256(path: Path) -> str:
    """Return the SHA-256 of a kernel file as it lies on disk."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def list_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the kernels in force as a text table."""
    shown = [
        {
            "kernel": row["kernel"],
            "origin": _standing(row),
            "sha256": row["sha256"][:_SHA],
            "when": row["when"] or "",
            "overloads": ", ".join(row["overloads"]),
        }
        for row in rows
    ]
    accepted = sum(row["accepted"] for row in rows)
    return (
        f"{table(shown, ('when', 'sha256', 'origin'))}\n\nkernels in force: {len(rows)}, of this workspace: {accepted}"
    )


def _standing(row: dict[str, Any]) -> str:
    """Return the origin for the table, with the number of cases if it was low."""
    few = _few(row["few_cases"])
    return f"{row['origin']} ({few})" if few else str(row["origin"])


def _few(counts: Mapping[str, int]) -> str:
    """Return a note on the low case counts behind an accepted version; '' if there were enough."""
    return f"few cases: {', '.join(map(str, counts.values()))}" if counts else ""


def history_table(history: dict[str, Any]) -> str:
    """Return a kernel's versions as a text table, oldest first."""
    digest = f", sha256 {history['sha256'][:_SHA]}" if history["sha256"] else ""
    if not history["versions"] and history["origin"] == BASE_LIBRARY:
        return (
            f"{history['overload']}: {history['kernel']} is the base library's kernel{digest}; none was accepted here"
        )
    force = f"{history['kernel']}: {_in_force(history['origin'])}{digest}"
    if not history["versions"]:
        return force
    shown = [
        {
            "version": v["number"],
            "standing": str(v["standing"]),
            "action": v["action"] if v["back_to"] is None else f"{v['action']} to {v['back_to']}",
            "when": v["when"],
            "sha256": (v["sha256"] or "base library")[:_SHA],
            "few cases": _few(v["provenance"].get("few_cases") or {}),
            "by": v["provenance"].get("model") or v["provenance"].get("by") or "",
            "traces": ", ".join(v["provenance"].get("traces", ())),
        }
        for v in history["versions"]
    ]
    return f"{table(shown, ('traces', 'by', 'few cases', 'when'))}\n\n{force}"


def _in_force(origin: str | None) -> str:
    """Return a sentence on the kernel in force, given its origin; None means that there is no kernel."""
    sentences = {
        None: "no kernel is in force; the base library has none",
        BASE_LIBRARY: "the base library's kernel is in force",
        BY_HAND: "a file put there by hand is in force",
    }
    return sentences.get(origin, f"{origin} is in force")


def version_text(version: Version, served: bool) -> str:
    """Return one line on a version that has just come into force.

    Args:
        version: The new version.
        served: True if the library has a kernel for the operator now.
    """
    description = "the base library's kernel" if version.sha256 is None else f"the source of version {version.origin}"
    if not served:
        return f"version {version.number}: no kernel is left; the base library has none"
    return f"version {version.number}: {description} is in force"
