"""Write the platform file and its reports, all or none."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from enable.discover import report
from enable.discover.discovery import Discovery
from enable.discover.profile import platform_text
from traces import UserError
from verify import platforms
from verify.lint import load_profile
from verify.platform_fields import Fields


def check_path(path: Path, force: bool) -> None:
    """Raise UserError if no platform file can be written there."""
    if path.suffix not in (".yaml", ".yml"):
        raise UserError(f"{path}: a platform file's name ends in .yaml")
    if path.exists() and not force:
        raise UserError(f"{path} exists; add --force to replace it")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no such directory")
    try:
        Fields(base="sim", name=path.stem)
    except ValidationError as error:
        raise UserError(f"{path.stem!r} is no platform name: use lowercase letters, digits, - and _") from error
    if path.stem in platforms.names():
        raise UserError(f"{path.stem!r} is a platform of the toolkit; choose another name for the file")


def report_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of the HTML and XML reports beside a platform file."""
    return path.with_name(f"{path.stem}-conformance.html"), path.with_name(f"{path.stem}-conformance.xml")


def write(discovery: Discovery, path: Path) -> tuple[Path, Path, Path]:
    """Write the platform file and the reports, and return their paths.

    The platform file is loaded before it gets its name, so that a file that exists is valid.
    """
    page, xml = report_paths(path)
    texts = {
        page: report.html(discovery, path.name),
        xml: report.junit(discovery),
        path: platform_text(discovery),  # the last one, because it stands for a complete run
    }
    temporary = {final: final.with_name(f"unfinished-{os.getpid()}-{final.name}") for final in texts}
    try:
        for final, text in texts.items():
            temporary[final].write_text(text, encoding="utf-8")
        load_profile(platforms.load(str(temporary[path])).lint)  # an invalid file raises an error here
        for final, written in temporary.items():
            os.replace(written, final)
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)
    return path, page, xml
