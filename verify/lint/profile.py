"""The dialect of kernel files as data: allow-lists with names, limits, and suggested replacements.

`load_profile` reads a dialect from verify/profiles; the other lint modules consult it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from traces import UserError
from verify.documents import Document, loaded
from verify.lint import hints

VERSION = 1
DEFAULT = "triton"
ANY_FILE = "triton-cuda"  # for files from others: an LLM's plain answers, and bare files
LAYOUTS = "LAYOUTS"  # a declaration in a kernel file, and the values that it may list:
STRIDED = "strided"
SPARSE = "sparse_coo"
DIRECTORY = Path(__file__).parents[1] / "profiles"
FORBIDDEN = ("scatter-store", "half-maths")  # rules beyond the allow-lists of names
_STATED = (
    "version",
    "name",
    "base",
    "contract",
    "alignment",
    "forbidden",
    "wrapper_operators",
    "limits",
    "imports",
    "importable",
    "decorators",
    "dtypes",
    "blocks",
    "host",
    "sparse",
    "kernel",
    "constructs",
    "hints",
    "add",
    "remove",
)


@dataclass(frozen=True)
class Host:
    """Names that host code (the wrapper and its helpers) may use.

    Attributes:
        functions: Full dotted name -> kind of the result.
        values: Dotted names that may be used as values.
        types: Dotted names of types.
        attributes: Name -> kinds of the result.
        builtins: Python builtins.
        builtins_on_tensors: Builtins that may also be applied to tensors.
        exceptions: Exception types.
        keywords: Keywords for functions, methods and builtins.
        contexts: Dotted names that `with` accepts.
    """

    functions: dict[str, str]
    values: frozenset[str]
    types: frozenset[str]
    attributes: dict[str, frozenset[str]]
    builtins: frozenset[str]
    builtins_on_tensors: frozenset[str]
    exceptions: frozenset[str]
    keywords: frozenset[str]
    contexts: frozenset[str]


@dataclass(frozen=True)
class Kernel:
    """Names that a `@triton.jit` function may use, and the options for its launch.

    Attributes:
        names: Dotted names.
        attributes: Attributes and methods on values.
        builtins: Python builtins.
        annotations: Parameter annotations, as dotted names and strings.
        launch_options: Keywords in a launch beside the kernel's parameters.
        constructs: Node names from Python's `ast`.
    """

    names: frozenset[str]
    attributes: frozenset[str]
    builtins: frozenset[str]
    annotations: frozenset[str]
    launch_options: frozenset[str]
    constructs: frozenset[str]


@dataclass(frozen=True)
class Sparse:
    """Additional names for host code in a file that takes sparse tensors; the fields are those in `Host`."""

    functions: dict[str, str]
    values: frozenset[str]
    attributes: dict[str, frozenset[str]]
    keywords: frozenset[str]


@dataclass(frozen=True)
class Profile:
    """One dialect, as read from verify/profiles/<name>.yaml.

    Attributes:
        name: Name of the dialect.
        contract: `file` for complete kernel files, or `bare` for plain answers.
        alignment: Every access has to begin at a multiple of this many bytes.
        forbidden: `scatter-store` (a store to loaded offsets) and `half-maths` (maths on fp16 or bf16 without
            conversion to fp32).
        wrapper_operators: Overloads that the wrapper may call in ATen.
        limits: Limits on the file, such as its number of bytes and its nesting depth.
        imports: Alias -> module, for the imports that a file may contain.
        importable: Further modules that may be imported.
        decorators: Decorators that may be called, with their allowed keywords.
        dtypes: Names that DTYPES may list.
        host: Names for host code.
        sparse: Additional names for files that take sparse tensors.
        kernel: Names for kernels.
        constructs: Refused syntax nodes and their replacements.
        hints: Refused names and their replacements.
        calls: Overloads that the wrapper may call in the library; empty unless set by `with_calls`.
        blocks: Block directories in order of precedence (verify/linking.py); `with_blocks` appends the
            library's.
    """

    name: str
    contract: str
    alignment: int
    forbidden: frozenset[str]
    wrapper_operators: frozenset[str]
    limits: dict[str, int]
    imports: dict[str, str]
    importable: frozenset[str]
    decorators: dict[str, list[str]]
    dtypes: tuple[str, ...]
    host: Host
    sparse: Sparse
    kernel: Kernel
    constructs: dict[str, str]
    hints: dict[str, str]
    calls: frozenset[str] = frozenset()
    blocks: tuple[Path, ...] = ()

    def with_calls(self, overloads: Iterable[str]) -> Profile:
        """Return this dialect for a wrapper that may call these library overloads (`--self-consistent`)."""
        return replace(self, calls=frozenset(overloads))

    def with_blocks(self, *directories: Path) -> Profile:
        """Return this dialect for files that may also import the blocks in these directories."""
        return replace(self, blocks=(*self.blocks, *directories))

    def with_layouts(self, layouts: Iterable[str]) -> Profile:
        """Return the dialect for a file that declares these LAYOUTS."""
        if SPARSE not in layouts:
            return self
        host, more = self.host, self.sparse
        return replace(
            self,
            host=replace(
                host,
                functions=host.functions | more.functions,
                values=host.values | more.values,
                attributes=host.attributes | more.attributes,
                keywords=host.keywords | more.keywords,
            ),
        )

    def of_platform(self, dialect: Profile) -> Profile:
        """Return this dialect, extended for files that are linked with a platform's blocks.

        If the platform's dialect has blocks, the files may use everything that it allows.
        """
        if not dialect.blocks:
            return self
        host, kernel = dialect.host, dialect.kernel
        attributes = {name: self.host.attributes.get(name, frozenset()) | of for name, of in host.attributes.items()}
        return replace(
            self,
            blocks=dialect.blocks,
            imports=self.imports | dialect.imports,
            host=replace(
                self.host,
                functions=host.functions | self.host.functions,
                attributes=self.host.attributes | attributes,
            ),
            kernel=replace(
                self.kernel,
                names=self.kernel.names | kernel.names,
                attributes=self.kernel.attributes | kernel.attributes,
                annotations=self.kernel.annotations | kernel.annotations,
            ),
        )

    @property
    def usual_imports(self) -> dict[str, str]:
        """Return the imports that any file may want.

        Gluon is excluded, because only platform blocks are written in it.
        """
        return {alias: m for alias, m in self.imports.items() if not m.startswith("triton.experimental")}

    @property
    def bare(self) -> bool:
        """Return True if a file needs no docstring, declarations or imports, and may be written in any honest style."""
        return self.contract == "bare"

    def instead(self, name: str) -> str:
        """Return the hint for a name, or for the longest dotted prefix that has one, or ''."""
        while name:
            if name in self.hints:
                return self.hints[name]
            name = name.rpartition(".")[0]
        return ""


def load_profile(name: str = DEFAULT) -> Profile:
    """Load the dialect with this name, or from the file at this path.

    The file is either a dialect itself, or a platform that states one.

    Raises:
        UserError: There is no such dialect (the message lists the choices), or the file is invalid (it names
            the line).
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return _of_file(Document.read(Path(name)))
    return _packaged(name)


@cache
def _packaged(name: str) -> Profile:
    raw = _read(name)
    path = DIRECTORY / f"{name}.yaml"
    try:
        return _profile(_inherit(raw))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{path}: not a lint profile ({error!r})") from error


def _of_file(document: Document) -> Profile:
    """Return the dialect in a file, applied on top of the packaged dialect that is its base."""
    inside = ["lint"] if "lint" in document.data else []  # the file describes a platform
    stated = document.data["lint"] if inside else document.data
    if not isinstance(stated, dict):
        return load_profile(str(stated) if "/" not in str(stated) else str(document.path.parent / stated))
    raw = {"base": DEFAULT, "name": document.path.stem, **stated}
    unknown = [key for key in raw if key not in _STATED]
    if unknown:
        raise document.error([*inside, unknown[0]], f"unknown field {unknown[0]!r}; there are: {', '.join(_STATED)}")
    if inside and "alignment" in stated:
        raise document.error([*inside, "alignment"], "alignment is the platform's: write it at the top of the file")
    if raw["base"] not in profile_names():
        names = ", ".join(profile_names())
        raise document.error([*inside, "base"], f"unknown dialect {raw['base']!r}; choose from {names}")
    unknown_rules = sorted(set(raw.get("forbidden", ())) - set(FORBIDDEN))
    if unknown_rules:
        problem = f"no rule {unknown_rules[0]!r}; choose from {', '.join(FORBIDDEN)}"
        raise document.error([*inside, "forbidden", unknown_rules[0]], problem)
    if "blocks" in stated:
        raw["blocks"] = _directories(document.path, stated["blocks"])
        missing = next((path for path in raw["blocks"] if not path.is_dir()), None)
        if missing is not None:
            choices = f"name one beside this file, or choose from {', '.join(packaged_blocks())}"
            raise document.error([*inside, "blocks"], f"no directory {missing}; {choices}")
    if inside:
        raw["alignment"] = document.data.get("alignment", 0) or 1
    try:
        profile = _profile(_inherit({key: value for key, value in raw.items() if key != "version"}))
    except _Misfit as error:
        raise document.error([*inside, *error.where], str(error)) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise document.error(inside, f"not a dialect ({error!r}); see docs/platforms") from error
    stated_hints, inherited = raw.get("hints", {}), load_profile(raw["base"]).hints
    for name, hint in stated_hints.items():
        if problem := hints.problem(name, hint, inherited, profile.imports):
            raise document.error([*inside, "hints", name], problem)
    return replace(profile, hints=hints.fitting(profile.hints, stated_hints, profile.kernel.names))


class _Misfit(ValueError):
    """An invalid change to a list in the base. `where` holds the keys, and the word."""

    def __init__(self, where: tuple[str, ...], problem: str) -> None:
        super().__init__(problem)
        self.where = where


def profile_names() -> list[str]:
    """Return the names of the packaged dialects."""
    return sorted(p.stem for p in DIRECTORY.glob("*.yaml") if _dialect(p))


def _read(name: str) -> dict[str, Any]:
    path = DIRECTORY / f"{name}.yaml"
    raw = _dialect(path) if path.parent == DIRECTORY and path.is_file() else None
    if raw is None:
        raise UserError(f"unknown lint profile {name!r}; choose one of: {', '.join(profile_names())}")
    if raw["version"] != VERSION:
        raise UserError(f"{path}: lint profile of an unknown version; this program reads version {VERSION}")
    return {**raw, "blocks": _directories(path, raw["blocks"])} if "blocks" in raw else raw


def _directories(path: Path, names: object) -> list[Path]:
    """Return the block directories that a profile names: packaged ones, or directories relative to the profile."""
    every = names if isinstance(names, list) else [names]
    return [
        DIRECTORY / name if name in packaged_blocks() else (path.parent / name).resolve() for name in map(str, every)
    ]


def packaged_blocks() -> list[str]:
    """Return the names of the packaged block directories for chips that lack a feature."""
    return sorted(p.name for p in DIRECTORY.glob("without_*") if p.is_dir())


def _dialect(path: Path) -> dict[str, Any] | None:
    """Return the file's contents, or None if it is another kind of profile; the directory also holds platforms."""
    raw = loaded(path)
    if not isinstance(raw, dict) or "version" not in raw:
        return None
    return raw if "base" in raw or {"host", "kernel", "hints"} <= raw.keys() else None


def _inherit(raw: dict[str, Any]) -> dict[str, Any]:
    """Merge a profile with its `base`: mappings are updated, and `add` and `remove` change lists."""
    if "base" not in raw:
        return raw
    raw = dict(raw)
    whole = deepcopy(_inherit(_read(raw.pop("base"))))
    _edit(whole, raw.pop("add", {}), ("add",))
    removed = raw.pop("remove", {})
    _edit(whole, removed, ("remove",))
    _remove_methods(whole["kernel"], removed.get("kernel", {}).get("names", ()))
    for key, value in raw.items():
        whole[key] = {**whole[key], **value} if isinstance(value, dict) else value
    return whole


def _remove_methods(kernel: dict[str, Any], names: Collection[str]) -> None:
    """Remove the tensor methods of functions that were removed, such as `x.erf()` for `tl.erf`."""
    kernel["attributes"] = [name for name in kernel["attributes"] if f"tl.{name}" not in names]


def _edit(into: dict[str, Any], changes: dict[str, Any], where: tuple[str, ...]) -> None:
    remove = where[0] == "remove"
    for key, change in changes.items():
        if key not in into:
            raise _Misfit((*where, key), f"there is no {key!r} here; there are: {', '.join(into)}")
        if isinstance(change, dict):
            _edit(into[key], change, (*where, key))
            continue
        stale = [x for x in change if (x in into[key]) != remove]
        if stale:
            near = get_close_matches(str(stale[0]), map(str, into[key]), 1) if remove else []
            problem = f"{stale[0]!r} is {'not' if remove else 'already'} in {key}"
            raise _Misfit((*where, key, stale[0]), f"{problem}; do you mean {near[0]}?" if near else problem)
        into[key] = [x for x in into[key] if x not in change] if remove else [*into[key], *change]


def _profile(raw: dict[str, Any]) -> Profile:
    raw = {key: value for key, value in raw.items() if key != "version"}
    host, sparse = (_host(dict(raw.pop(key))) for key in ("host", "sparse"))
    kernel = {key: frozenset(names) for key, names in raw.pop("kernel").items()}
    return Profile(
        host=Host(**host),
        sparse=Sparse(**sparse),
        kernel=Kernel(**kernel),
        dtypes=tuple(raw.pop("dtypes")),
        forbidden=frozenset(raw.pop("forbidden")),
        wrapper_operators=frozenset(raw.pop("wrapper_operators")),
        importable=frozenset(raw.pop("importable")),
        blocks=tuple(raw.pop("blocks", ())),
        **raw,
    )


def _host(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the fields for a `Host`: names grouped by result kind are inverted, and lists become sets."""
    functions = {name: kind for kind, names in raw.pop("functions").items() for name in names}
    attributes: dict[str, frozenset[str]] = {}
    for kind, names in raw.pop("attributes").items():
        for name in names:
            attributes[name] = attributes.get(name, frozenset()) | {kind}
    return {"functions": functions, "attributes": attributes} | {key: frozenset(names) for key, names in raw.items()}
