"""Export kernels as a package that registers them on import, or as BackendBench's directories.

`enable export` calls `export`. A package contains the kernel files, the serving code and a table with the overloads.
"""

from __future__ import annotations

import hashlib
import json
import keyword
import math
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jinja2

from enable.serve.backends import BACKENDS
from enable.serve.entries import Entry
from enable.serve.native import WAY
from traces import UserError, facts
from traces.errors import choose_from
from traces.overloads import base_name, bind, resolve
from traces.packaging import ROOT, moved
from verify.imports import reached
from verify.judging.standings import ENOUGH, marked
from verify.judging.verdicts import judge_version
from verify.outcome import Outcome
from verify.platforms import Platform

_SERVES = "enable.serve.registration"  # the module that an exported package runs, along with its imports
_FORMAT = 2  # version of overloads.json
_MARKS = ("*/overloads.json", "*/*_implementation_v1.py")  # files by which an earlier export is known


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    Attributes:
        directory: Where the files are.
        overloads: Exported overloads.
        files: Number of kernel files.
        left_out: Chosen overloads that this form cannot hold, with the reason.
    """

    directory: Path
    overloads: tuple[str, ...]
    files: int
    left_out: Mapping[str, str]


Write = Callable[[Path, Mapping[str, Entry], "Label"], dict[str, str]]


@dataclass(frozen=True)
class Label:
    """How a package describes itself.

    Attributes:
        name: Package name.
        platform: Name of the platform whose verdicts support the kernels; None if no verdict does.
        judged: The evidence for the kernels, in a few words.
        basis: The same in a sentence.
        chip: The chip for which the package registers on import; None for CUDA.
        failures: What failed in kernels that were exported all the same, by overload.
    """

    name: str
    platform: str | None
    judged: str
    basis: str
    chip: Platform | None = None
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """Device type for which the package registers on import."""
        return self.chip.device if self.chip else "cuda"

    @property
    def where(self) -> str:
        """Return the device as titles call it."""
        return f"device {self.chip.device}" if self.chip else "CUDA"

    @property
    def key(self) -> str:
        """Dispatch key of that device."""
        return self.chip.dispatch_key if self.chip else BACKENDS["cuda"].key


def basis(platform: Platform, unverified: bool) -> str:
    """Return a sentence that explains the evidence for the dtypes of the selected kernels."""
    if unverified:
        return (
            "The dtypes are those that the kernels claim, whatever verdicts there are. The table lists known failures."
        )
    few_note = (
        f"a pass on fewer than {ENOUGH} independent cases, unlike in more than what tensors contain, says on how many"
    )
    ran = "" if platform.run_device else " in Triton's interpreter, and on no GPU"
    judge = judge_version(platform)
    return f"Every case of each dtype that was judged passed on platform {platform.name}{ran} ({judge}); {few_note}."


def export(form: str, directory: Path, entries: Mapping[str, Entry], label: Label, force: bool) -> Exported:
    """Write the kernels that serve `entries` to a directory, either completely or not at all.

    Args:
        form: "package" or "backendbench".
        directory: Destination; files appear there by one rename.
        entries: Entry for each overload.
        label: The package's name and evidence.
        force: Replace an earlier export; a directory with other contents is never replaced.

    Raises:
        UserError: The form is unknown, the name is invalid for a package, or the directory is in use.
    """
    if form not in FORMS:
        raise UserError(f"unknown format {form!r}{choose_from(form, FORMS)}")
    _check_name(label.name)
    if directory.exists() and not directory.is_dir():
        raise UserError(f"{directory} is a file; name a directory")
    target = directory.resolve()
    if target in (Path.cwd(), *Path.cwd().parents):
        raise UserError(f"{directory} is the working directory or contains it; name another directory")
    if directory.is_dir() and any(directory.iterdir()):
        if hidden := sorted(path.name for path in directory.glob(".*")):
            raise UserError(f"{directory} holds {hidden[0]}, which no export writes; name another directory")
        if not any(any(directory.glob(pattern)) for pattern in _MARKS):
            raise UserError(f"{directory} is not empty and holds no earlier export; name another directory")
        if not force:
            raise UserError(f"{directory} holds an earlier export; name another directory, or replace it with --force")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as temporary:
        staging = Path(temporary) / "made"
        staging.mkdir()
        left_out = FORMS[form](staging, entries, label)
        if target.is_dir():
            target.rename(Path(temporary) / "replaced")
        staging.rename(target)
    written = tuple(o for o in entries if o not in left_out)
    return Exported(directory, written, len({entries[o].kernel for o in written}), left_out)


def write_package(directory: Path, entries: Mapping[str, Entry], label: Label) -> dict[str, str]:
    """Write a setuptools package: kernels, serving code and the overload table."""
    package, runtime = directory / label.name, directory / label.name / "runtime"
    places = _places(entries)
    texts = {path: text for entry in entries.values() for path, text in entry.texts.items()}
    for path, relative_path in places.items():
        _write(package / "kernels" / relative_path, texts[path])
    _write_runtime(runtime, f"{label.name}.runtime.")
    manifest = {
        "format": _FORMAT,
        "platform": label.platform,
        "digests": {
            relative_path: hashlib.sha256(texts[path].encode()).hexdigest() for path, relative_path in places.items()
        },
        "overloads": {o: _fields(entry, places) for o, entry in entries.items()},
    }
    _write(package / "overloads.json", json.dumps(manifest, indent=1) + "\n")
    _write(directory / "LICENSE", _license())
    values = {
        "name": label.name,
        "variable": f"{label.name.upper()}_DEVICE",
        "entries": entries,
        "places": places,
        "label": label,
        "dtypes": lambda entry: ", ".join(d or "no floating dtype" for d in sorted(entry.verified)),
        "verdict": lambda overload, entry: label.failures.get(overload, _verdict(entry)),
    }
    for template, target in (
        ("package_init.py.j2", package / "__init__.py"),
        ("package_pyproject.toml.j2", directory / "pyproject.toml"),
        ("package_readme.md.j2", directory / "README.md"),
    ):
        _write(target, _rendered(template, values))
    return {}


def _verdict(entry: Entry) -> str:
    return "none" if entry.independent is None else marked(Outcome.PASS, entry.independent)


def write_backendbench(directory: Path, entries: Mapping[str, Entry], label: Label) -> dict[str, str]:
    """Write a directory per operator: OP/OP_implementation_v1.py, the kernel with `OP_kernel_impl(*args, **kwargs)`.

    An operator has one kernel file in this form. Overloads that other code derives from a kernel are left out, and the
    result gives the reasons.
    """
    left_out: dict[str, str] = {}
    operators: dict[str, list[str]] = defaultdict(list)
    for overload, entry in entries.items():
        exportable = entry.plan.direct and not entry.calls and not entry.draws
        served = operators[base_name(resolve(overload))] if exportable else []
        if not entry.plan.direct:
            left_out[overload] = f"derived from {entry.plan.base}"
        elif entry.calls:
            left_out[overload] = "its wrapper calls other kernels"
        elif entry.draws:
            left_out[overload] = "its wrapper is given a key and counter of random numbers"
        elif served and entries[served[0]].kernel != entry.kernel:
            left_out[overload] = f"in another kernel file than {served[0]}"
        else:
            served.append(overload)
    for operator, overloads in operators.items():
        first = entries[overloads[0]]
        source = first.texts[first.kernel].rstrip()
        called = _rendered("backendbench.py.j2", {"operator": operator, "overloads": list(map(_signature, overloads))})
        _write(directory / operator / f"{operator}_implementation_v1.py", f"{source}\n{called}")
    return left_out


FORMS: dict[str, Write] = {"package": write_package, "backendbench": write_backendbench}


def _license() -> str:
    """Return the text of the license: a file of a checkout, or of an installed wheel's metadata."""
    file = ROOT / "LICENSE"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    text = distribution("enablekit").read_text("licenses/LICENSE")
    assert text, "the wheel was built without its license"
    return text


def _check_name(name: str) -> None:
    """Raise UserError if the name cannot be a package name."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or name in ("torch", "triton"):
        raise UserError(f"{name!r} cannot be the name of the package; write it in lower case, like my_kernels")


def _places(entries: Mapping[str, Entry]) -> dict[Path, str]:
    """Map each kernel file to its path in the package: GROUP/NAME.py, with a number if two layers share that name."""
    places: dict[Path, str] = {}
    for path in dict.fromkeys(p for e in entries.values() for p in _files(e)):
        same = sum((other.parent.name, other.name) == (path.parent.name, path.name) for other in places)
        places[path] = f"{path.parent.name}/{path.stem}{f'_{same + 1}' if same else ''}.py"
    return places


def _files(entry: Entry) -> Iterator[Path]:
    """Yield all kernel files that an entry needs."""
    yield entry.kernel
    if entry.copy is not None:
        yield entry.copy
    for callees in entry.calls.values():
        yield from callees.values()


def _write_runtime(runtime: Path, prefix: str) -> None:
    """Copy the serving code at its path relative to the repository, with facts as Python for packages without PyYAML.

    `prefix` is prepended to the package names in import statements.
    """
    for path in reached(ROOT, [_SERVES]):
        _write(runtime / path.relative_to(ROOT), moved(path.read_text(encoding="utf-8"), prefix))
    for path in WAY.files():
        _write(runtime / path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    names = {tag: sorted(facts.names(fact)) for tag, fact in facts.read(facts.FILE).items()}
    _write(runtime / "traces" / "facts.py", _rendered("package_facts.py.j2", {"facts": names}))
    for folder in [runtime, *(p for p in runtime.rglob("*") if p.is_dir())]:
        if not (folder / "__init__.py").exists():
            _write(folder / "__init__.py", '"""Of what serves ATen calls with the kernels, and counts them."""\n')


def _fields(entry: Entry, places: Mapping[Path, str]) -> dict[str, Any]:
    """Return the entry as JSON-compatible fields, with paths relative to the package's kernels."""
    return {
        "plan": asdict(entry.plan),
        "kernel": places[entry.kernel],
        "copy": places[entry.copy] if entry.copy else None,
        "takes_out": entry.takes_out,
        "draws": entry.draws,
        "lawless": entry.lawless,
        "listed": sorted(entry.listed),
        "verified": sorted(entry.verified),
        "independent": entry.independent,
        "calls": {places[path]: {o: places[p] for o, p in callees.items()} for path, callees in entry.calls.items()},
    }


def _signature(overload: str) -> dict[str, Any]:
    """Describe the arguments of an overload as source text."""
    op = resolve(overload)
    arguments = op._schema.arguments
    defaults = bind(op, (), {a.name: None for a in arguments if not a.has_default_value()})
    described = [
        {
            "name": a.name,
            "type": str(a.type),
            "default": f", {_literal(defaults[a.name])}" if a.has_default_value() else "",
        }
        for a in arguments
    ]
    return {"name": overload, "arguments": described, "positional": sum(not a.kwarg_only for a in arguments)}


def _literal(value: Any) -> str:
    """Return the source text for a default value; repr of an infinity or NaN is not valid Python."""
    return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    """Render a template from enable/templates."""
    environment = jinja2.Environment(  # noqa: S701 - source text, not HTML
        loader=jinja2.FileSystemLoader(ROOT / "enable" / "templates"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)


def _write(path: Path, text: str) -> None:
    """Write a text file and fsync it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
