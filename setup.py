"""Builds wheels in which the packages of this repository lie inside the package `enablekit._toolkit`.

At the top level of site-packages, names such as `models`, `traces` or `verify` would hide a user's own modules, or be
hidden by them. An editable installation leaves the packages where they are.
"""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

sys.path.insert(0, str(Path(__file__).parent))
from traces.packaging import PACKAGES, TOOLKIT, moved  # noqa: E402


class BuildInsidePublicPackage(build_py):
    """Moves each package into the public one, and has its imports name the new place."""

    def run(self) -> None:
        """Build as usual, then move."""
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib)
        toolkit = built.joinpath(*TOOLKIT.split("."))
        for package in PACKAGES:
            shutil.rmtree(toolkit / package, ignore_errors=True)  # left by an earlier build
            shutil.move(built / package, toolkit / package)
        for path in toolkit.parent.rglob("*.py"):
            path.write_text(moved(path.read_text(encoding="utf-8"), f"{TOOLKIT}."), encoding="utf-8")


class NamePublicPackage(egg_info):
    """Names `enablekit` alone as what the wheel has at the top level."""

    def run(self) -> None:
        """Write the metadata as usual, then this file anew."""
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text(f"{TOOLKIT.partition('.')[0]}\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildInsidePublicPackage, "egg_info": NamePublicPackage})
