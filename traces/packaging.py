"""The names under which this toolkit's packages are imported.

In a checkout the packages lie at the top level. A wheel ships them inside `enablekit._toolkit`, so that they do not
hide a user's own `models`, `traces` or `verify`. setup.py moves them and rewrites their imports with `moved`.
"""

from __future__ import annotations

import re
from pathlib import Path

TOOLKIT = "enablekit._toolkit"  # of a wheel
PACKAGES = ("traces", "models", "capture", "verify", "generate", "enable")
PREFIX = __name__.removesuffix("traces.packaging")  # "" in a checkout
ROOT = Path(__file__).parents[1]  # the directory that holds the packages
IMPORT_ROOT = Path(__file__).parents[1 + PREFIX.count(".")]  # the directory that Python has to search for them
_IMPORT = re.compile(rf"^(\s*from ){re.escape(PREFIX)}(?=(?:{'|'.join(PACKAGES)})\b)", re.MULTILINE)


def qualified(name: str) -> str:
    """Return the full name of one of the toolkit's modules, such as `verify.child.zygote`."""
    return PREFIX + name


def moved(text: str, prefix: str) -> str:
    """Return the source text of one of the toolkit's modules with its imports below another prefix.

    Every import of the toolkit's own modules has the form `from MODULE import NAME`; tests/test_architecture.py
    checks that.
    """
    return _IMPORT.sub(rf"\g<1>{prefix}", text)
