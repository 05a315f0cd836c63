"""Import kernel files into this process, and Triton as they need it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from traces.errors import UserError
from verify.interpreter import mend


def load_wrapper(path: Path) -> Callable[..., Any]:
    """The wrapper of a kernel file, which is imported from where it lies."""
    name = f"enable_kernel_{path.stem}_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Triton looks a kernel's module up by name
    spec.loader.exec_module(module)
    wrapper: Callable[..., Any] = module.wrapper
    return wrapper


def set_up_triton(interpreted: bool) -> None:
    """Import Triton so that kernels are interpreted, or compiled; it decides that once, when it is imported."""
    if "triton" not in sys.modules and interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as where kernels are judged
    import triton.language

    found = type(triton.language.softmax).__name__ == "InterpretedFunction"
    if found != interpreted:
        must = "interpret kernels: set TRITON_INTERPRET=1" if interpreted else "compile kernels: unset TRITON_INTERPRET"
        raise UserError(f"Triton has to {must} before Python starts")
    if interpreted:
        mend()
