"""The dialect of kernel files as data: allow-lists of names, limits and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from traces import UserError
from verify.documents import Document, loaded

VERSION = 1
DEFAULT = "triton"
ANY_FILE = "triton-cuda"  # for files of others: plain answers of an LLM, bare files
LAYOUTS = "LAYOUTS"  # a declaration of a kernel file, and what it may name:
STRIDED = "strided"
SPARSE = "sparse_coo"
DIRECTORY = Path(__file__).parents[1] / "profiles"
FORBIDDEN = ("scatter-store", "half-maths")  # rules beyond the lists of names
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
    """What host code (the wrapper and its helpers) may use.

    functions: full dotted name -> kind of its result. attributes: name -> kinds of its result. keywords: of functions,
    methods and builtins. contexts: dotted names of what `with` may hold.
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
    """What a `@triton.jit` function may use, and the options of its launch.

    annotations: of parameters, dotted names and strings. constructs: names of nodes of Python's `ast`.
    """

    names: frozenset[str]
    attributes: frozenset[str]
    builtins: frozenset[str]
    annotations: frozenset[str]
    launch_options: frozenset[str]
    constructs: frozenset[str]


@dataclass(frozen=True)
class Sparse:
    """What host code may use beside in a file that takes sparse tensors; fields as of `Host`."""

    functions: dict[str, str]
    values: frozenset[str]
    attributes: dict[str, frozenset[str]]
    keywords: frozenset[str]


@dataclass(frozen=True)
class Profile:
    """One dialect, as read from verify/profiles/<name>.yaml.

    alignment: bytes at which every access has to begin. forbidden: `scatter-store` (a store whose offsets were loaded),
    `half-maths` (maths on fp16 or bf16 that is not converted to fp32). decorators: those that may be called, with the
    keywords that they may be given. importable: modules beside `imports`. wrapper_operators: overloads that the wrapper
    may have ATen compute. calls: overloads that the wrapper may have the library's kernels compute, none unless
    `with_calls` says so. blocks: directories of blocks in order of precedence (verify/linking.py), of the library's as
    `with_blocks` hands them in.
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
        """The same dialect for a wrapper that may call these overloads of the library (`--self-consistent`)."""
        return replace(self, calls=frozenset(overloads))

    def with_blocks(self, *directories: Path) -> Profile:
        """Return the same dialect for files that may also import the blocks of these directories."""
        return replace(self, blocks=(*self.blocks, *directories))

    def with_layouts(self, layouts: Iterable[str]) -> Profile:
        """The dialect of a file whose LAYOUTS are these."""
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
        """This dialect for files that are linked with the blocks of a platform's, if it has any: they may use what that
        allows."""
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
        """Those that any file may want: without Gluon, in which blocks of a platform are written."""
        return {alias: m for alias, m in self.imports.items() if not m.startswith("triton.experimental")}

    @property
    def bare(self) -> bool:
        """Whether a file may do without docstring, declarations and imports, and be written in any honest style."""
        return self.contract == "bare"

    def instead(self, name: str) -> str:
        """The hint for a name or, for a dotted one, for the longest prefix that has one; '' if there is none."""
        while name:
            if name in self.hints:
                return self.hints[name]
            name = name.rpartition(".")[0]
        return ""


def load_profile(name: str = DEFAULT) -> Profile:
    """The dialect of this name, or of the file at this path: a dialect of its own, or a platform's that states one.

    Raises UserError, listing the choices, if there is none, and with the line of what is wrong in a file.
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
    """What the file says of a dialect, on top of the packaged one that is its base."""
    inside = ["lint"] if "lint" in document.data else []  # of a platform
    told = document.data["lint"] if inside else document.data
    if not isinstance(told, dict):
        return load_profile(str(told) if "/" not in str(told) else str(document.path.parent / told))
    raw = {"base": DEFAULT, "name": document.path.stem, **told}
    unknown = [key for key in raw if key not in _STATED]
    if unknown:
        raise document.error([*inside, unknown[0]], f"unknown field {unknown[0]!r}; there are: {', '.join(_STATED)}")
    if inside and "alignment" in told:
        raise document.error([*inside, "alignment"], "alignment is the platform's: write it at the top of the file")
    if raw["base"] not in profile_names():
        names = ", ".join(profile_names())
        raise document.error([*inside, "base"], f"unknown dialect {raw['base']!r}; choose from {names}")
    unheard = sorted(set(raw.get("forbidden", ())) - set(FORBIDDEN))
    if unheard:
        what = f"no rule {unheard[0]!r}; choose from {', '.join(FORBIDDEN)}"
        raise document.error([*inside, "forbidden", unheard[0]], what)
    if "blocks" in told:
        raw["blocks"] = _directory(document.path, told["blocks"])
        if not raw["blocks"].is_dir():
            raise document.error([*inside, "blocks"], f"no directory {raw['blocks']}; name one beside this file")
    if inside:
        raw["alignment"] = document.data.get("alignment", 0) or 1
    try:
        return _profile(_inherit({key: value for key, value in raw.items() if key != "version"}))
    except _Misfit as error:
        raise document.error([*inside, *error.where], str(error)) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise document.error(inside, f"not a dialect ({error!r}); see docs/platforms") from error


class _Misfit(ValueError):
    """A list of the base cannot be changed so. where: keys, and the word."""

    def __init__(self, where: tuple[str, ...], what: str) -> None:
        super().__init__(what)
        self.where = where


def profile_names() -> list[str]:
    """The dialects that there are."""
    return sorted(p.stem for p in DIRECTORY.glob("*.yaml") if _dialect(p))


def _read(name: str) -> dict[str, Any]:
    path = DIRECTORY / f"{name}.yaml"
    raw = _dialect(path) if path.parent == DIRECTORY and path.is_file() else None
    if raw is None:
        raise UserError(f"unknown lint profile {name!r}; choose one of: {', '.join(profile_names())}")
    if raw["version"] != VERSION:
        raise UserError(f"{path}: lint profile of an unknown version; this program reads version {VERSION}")
    return {**raw, "blocks": _directory(path, raw["blocks"])} if "blocks" in raw else raw


def _directory(path: Path, name: object) -> Path:
    """The directory that a profile names, from its own on."""
    return (path.parent / str(name)).resolve()


def _dialect(path: Path) -> dict[str, Any] | None:
    """The file's contents; None if it is a profile of another kind (the directory holds the platforms' too)."""
    raw = loaded(path)
    if not isinstance(raw, dict) or "version" not in raw:
        return None
    return raw if "base" in raw or {"host", "kernel", "hints"} <= raw.keys() else None


def _inherit(raw: dict[str, Any]) -> dict[str, Any]:
    """A profile with all that it takes from its `base`: mappings are laid over, `add` and `remove` change its lists."""
    if "base" not in raw:
        return raw
    raw = dict(raw)
    whole = deepcopy(_inherit(_read(raw.pop("base"))))
    _edit(whole, raw.pop("add", {}), ("add",))
    _edit(whole, raw.pop("remove", {}), ("remove",))
    for key, value in raw.items():
        whole[key] = {**whole[key], **value} if isinstance(value, dict) else value
    return whole


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
            raise _Misfit((*where, key, stale[0]), f"{stale[0]!r} is {'not' if remove else 'already'} in {key}")
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
        blocks=tuple([raw.pop("blocks")] if "blocks" in raw else []),
        **raw,
    )


def _host(raw: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `Host`: names by the kind of their results turned round, lists made sets."""
    functions = {name: kind for kind, names in raw.pop("functions").items() for name in names}
    attributes: dict[str, frozenset[str]] = {}
    for kind, names in raw.pop("attributes").items():
        for name in names:
            attributes[name] = attributes.get(name, frozenset()) | {kind}
    return {"functions": functions, "attributes": attributes} | {key: frozenset(names) for key, names in raw.items()}
