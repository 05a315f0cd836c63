"""Import kernel files into this process, and Triton in the mode that they need."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any

from enable.serve import floats, launches
from traces.errors import UserError
from verify.child.aiming import aim, compiler, target
from verify.child.interpreter import mend


def load_wrapper(path: Path, text: str | None = None, **options: Any) -> Callable[..., Any]:
    """Load a kernel file and return its wrapper.

    `text` is the source with the linked blocks, as it was judged; by default the file is read. `options` are those of
    launches that do not state them themselves.
    """
    text = path.read_text(encoding="utf-8") if text is None else text
    name = f"enable_kernel_{path.stem}_{abs(hash((path, text))):x}"
    module = ModuleType(name)
    module.__file__ = str(path)
    # Triton looks a kernel's module up by name, and its source in linecache.
    sys.modules[name] = module
    linecache.cache[str(path)] = len(text), None, text.splitlines(keepends=True), str(path)
    exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 - a kernel of the library, to be run
    floats.prepare(module.__dict__)
    aim(module, target())
    launches.count_those_of(module, options)
    wrapper: Callable[..., Any] = module.wrapper
    return wrapper


def set_up_triton(interpreted: bool) -> None:
    """Import Triton so that it interprets or compiles kernels; it fixes that at its first import.

    Raises:
        UserError: Triton was imported in the other mode.
    """
    if "triton" not in sys.modules and interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as in the processes that judge kernels
    import triton.language  # noqa: F401 - the import fixes the mode

    interprets = not compiler()
    if interprets != interpreted:
        must = "interpret kernels: set TRITON_INTERPRET=1" if interpreted else "compile kernels: unset TRITON_INTERPRET"
        raise UserError(f"Triton has to {must} before Python starts")
    if interpreted:
        mend()


def triton_is(versions: Collection[str]) -> bool:
    """Return True if Triton's version is one of these, each written like "3.9"."""
    import triton

    return ".".join(triton.__version__.split(".")[:2]) in versions
