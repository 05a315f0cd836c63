"""Render the conformance report: an HTML page, and JUnit XML for CI systems.

Messages come from compilers, so they are untrusted: Jinja and ElementTree escape them, and `printable` replaces control
characters, which XML cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined

from enable.discover.discovery import Discovery, reproducer
from enable.discover.verdicts import CRASHED, EntryVerdict, counts
from enable.terminal import LAYOUT, printable
from traces.packaging import qualified

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def html(discovery: Discovery, platform: str) -> str:
    """Return the page.

    Args:
        discovery: The verdicts.
        platform: Name of the platform file.
    """
    environment = Environment(loader=PackageLoader(qualified("enable")), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("discover.html.j2").render(
        policy=POLICY,
        label=printable(discovery.label),
        platform=printable(platform),
        triton=discovery.triton,
        torch=discovery.torch,
        total=len(discovery.verdicts),
        counts=counts(discovery.verdicts.values()),
        failures=list(_failures(discovery)),
    )


def _failures(discovery: Discovery) -> Iterator[dict[str, str]]:
    """Yield the failures: first those that no simpler entry explains."""
    failed = [v for v in discovery.verdicts.values() if v.failed]
    for each in sorted(failed, key=lambda v: bool(v.explained_by)):
        yield {
            "name": each.entry.name,
            "verdict": each.verdict,
            "message": printable(each.message),
            "log": printable(each.log, LAYOUT),
            "explained_by": each.explained_by,
            "smallest": _smallest(each),
            "program": printable(reproducer(each, discovery), LAYOUT),
        }


def _smallest(each: EntryVerdict) -> str:
    """Return the smallest failing form as text."""
    if not each.smallest:
        return ""
    size = each.smallest["N"]
    return (
        f"fails from N = {size}; works up to N = {each.largest_working}"
        if each.largest_working
        else f"fails for N = {size}"
    )


def junit(discovery: Discovery) -> str:
    """Return the XML: one suite per group, and one test case per entry."""
    root = ElementTree.Element("testsuites", name=printable(f"discover {discovery.label}"))
    suites: dict[str, ElementTree.Element] = {}
    for row in counts(discovery.verdicts.values()):
        failed = row["entries"] - row["works"] - row[CRASHED]
        totals = {"tests": row["entries"], "failures": failed, "errors": row[CRASHED]}
        attributes = {name: str(value) for name, value in totals.items()}
        suites[row["group"]] = ElementTree.SubElement(root, "testsuite", {"name": row["group"], **attributes})
    for name, each in discovery.verdicts.items():
        group = each.entry.group
        case = ElementTree.SubElement(suites[group], "testcase", {"classname": f"discover.{group}", "name": name})
        if each.failed:
            kind = "error" if each.verdict == CRASHED else "failure"
            because = f" (explained by {each.explained_by})" if each.explained_by else ""
            message = printable(f"{each.message}{because}")
            element = ElementTree.SubElement(case, kind, {"type": each.verdict, "message": message})
            text = f"{each.log}\n\nReproducer:\n\n{reproducer(each, discovery)}"
            element.text = printable(text, LAYOUT)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
