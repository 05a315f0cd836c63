"""Write a reduced program as one file that needs only torch and triton."""

from __future__ import annotations

import ast
import inspect
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from enable.reduce import inputs
from enable.reduce.edits import PROVIDED
from enable.reduce.failure import Trials, headline
from enable.reduce.reduction import Reduction
from verify.contract.derive import call
from verify.outcome import Outcome
from verify.platforms import EXECUTE

_COMPILE = """\
class Target:
    \"\"\"Stands in for the GPU, so that Triton compiles for {backend}:{arch} on any machine.\"\"\"

    get_current_target = lambda self: GPUTarget({backend!r}, {arch!r}, {warp_size})
    get_current_device = get_current_stream = lambda self, *device: 0
    get_active_torch_device = lambda self: torch.device("cpu")


def compile_only(kernel, *args, run=triton.JITFunction.run, **kwargs):
    return run(kernel, *args, **{{**kwargs, "warmup": True}})


if __name__ == "__main__":
    triton.runtime.driver.set_active(Target())
    triton.JITFunction.run = compile_only
    {call}
"""
_RUN = """\
if __name__ == "__main__":
    print({call})
"""
_COMPARE = """\
if __name__ == "__main__":
    print("kernel:", {call})
    print("ATen:  ", {reference})
"""


def program(reduction: Reduction, trials: Trials) -> str:
    """Return the text of the file, which fails in the same way when it is run by Python."""
    job, target, mode = trials.job, trials.target, trials.platform.mode
    arguments = reduction.arguments
    device = trials.platform.device if target is None else ""
    wrapper = f"wrapper({_arguments(reduction, trials, device)})"
    head = [*_header(trials), ""]
    imports = [line for line in PROVIDED.split("\n") if line != "import math" or "math." in reduction.source]
    if target is not None:
        imports.append("from triton.backends.compiler import GPUTarget")
        main = _COMPILE.format(**vars(target), call=wrapper)
    elif trials.failure.outcome is Outcome.WRONG:
        operator = job.plan.overload.replace("aten::", "torch.ops.aten.")
        operator = operator if "." in job.plan.overload else f"{operator}.default"
        named = ", ".join(f"**{{{name!r}: {_on(inputs.code(value), '')}}}" for name, value in arguments.items())
        main = _COMPARE.format(call=wrapper, reference=f"{operator}({named})")
    else:
        main = _RUN.format(call=wrapper)
    if mode == EXECUTE or target is not None:  # the variable decides when triton is imported
        setting = (
            'os.environ["TRITON_INTERPRET"] = "1"' if target is None else 'os.environ.pop("TRITON_INTERPRET", None)'
        )
        imports = ["import os", "", setting, "", *imports]
    if any(word in main for word in ("inf", "nan")):
        imports.append("from math import inf, nan")
    return "\n".join([*head, *imports, "", "", reduction.source, "", "", main])


def _header(trials: Trials) -> list[str]:
    """Return comment lines with the outcome, the message, the versions and the target."""
    target = trials.target
    where = f"compiling for {target.backend}:{target.arch}" if target else f"running on {trials.platform.name}"
    versions = ", ".join(f"{name} {_version(name)}" for name in ("torch", "triton"))
    message = " ".join(headline(trials.verdict).split())
    return [f"# {trials.failure.outcome} when {where}, with {versions}.", f"# {message}"]


def _version(package: str) -> str:
    """Return the version that is imported, which PYTHONPATH may have chosen."""
    if package == "triton":
        import triton

        return str(triton.__version__)
    try:
        return version(package)
    except PackageNotFoundError:
        return "(unknown)"


def _arguments(reduction: Reduction, trials: Trials, device: str) -> str:
    """Return the arguments that the judge passes to the wrapper, as code."""
    passed: list[str] = []

    def wrapper(*args: Any, **kwargs: Any) -> None:
        passed.extend(_on(inputs.code(value), device) for value in args)
        passed.extend(f"{name}={_on(inputs.code(value), device)}" for name, value in kwargs.items())

    wrapper.__signature__ = _signature(reduction.source)  # type: ignore[attr-defined]
    call(trials.job.plan, reduction.arguments, wrapper, False, None, not trials.job.strict)
    return ", ".join(passed)


def _on(text: str, device: str) -> str:
    """Return an argument's code, with a tensor moved to the device."""
    is_tensor = text.startswith(("torch.full(", "torch.zeros(", "torch.tensor(", "torch.empty_strided("))
    return f"{text}.to({device!r})" if device and is_tensor else text


def _signature(source: str) -> inspect.Signature:
    """Return the signature of `wrapper` in a program that is not executed here."""
    tree = ast.parse(source)
    arguments = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "wrapper").args
    kinds = inspect.Parameter
    defaults = [kinds.empty] * (len(arguments.args) - len(arguments.defaults)) + [*map(_value, arguments.defaults)]
    pairs = zip(arguments.args, defaults, strict=True)
    parameters = [kinds(a.arg, kinds.POSITIONAL_OR_KEYWORD, default=default) for a, default in pairs]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    only = [kinds(a.arg, kinds.KEYWORD_ONLY, default=_value(d) if d else kinds.empty) for a, d in keywords]
    return inspect.Signature([*parameters, *only])


def _value(node: ast.expr) -> Any:
    """Return a literal default, or a value that equals no other one."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return object()


def lines(source: str) -> int:
    """Return the number of lines of code: without empty lines, comments and docstrings."""
    from enable.reduce.edits import prepared

    return len([line for line in ast.unparse(prepared(source)).split("\n") if line.strip()])
