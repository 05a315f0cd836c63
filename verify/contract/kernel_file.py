"""The contract of a kernel file, read without executing it.

A kernel file is one Python file: a docstring that begins with the schema, `OVERLOADS` and `DTYPES` as literal tuples,
`@triton.jit` kernels and one `wrapper`; `LAYOUTS = ("sparse_coo", "strided")` where it takes sparse tensors, too.
Everything here comes from its syntax tree, so a file that would misbehave when imported can still be matched, hashed
and shown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from traces import UserError
from verify import syntax
from verify.linking import LinkError, State, key_of, link, state
from verify.lint.names import called_operators, literal_strings, no_wrapper
from verify.lint.profile import LAYOUTS, SPARSE, STRIDED
from verify.lint.schema import PHILOX

__all__ = ["SPARSE", "KernelFile", "KernelFileError"]


class KernelFileError(UserError):
    """A kernel file that does not parse or does not follow the contract."""


@dataclass(frozen=True)
class KernelFile:
    """One parsed kernel file.

    `written`: its text as its author has it; `source`: with the blocks that it imports, which is what is judged.
    `takes_out`: its wrapper can write to a destination of the caller's. `draws`: it is given `philox`, the key and
    counter of random numbers (verify/contract/random_state.py).

    layouts: of the tensors that it takes. calls: overloads that it asks for as `torch.ops.aten.NAME.OVERLOAD(...)`.
    callees: the kernel files that serve them, as a library gives them (generate/kernel_library.py); nothing serves a
    call without one.
    """

    path: Path
    written: str
    source: str
    overloads: tuple[str, ...]
    dtypes: tuple[str, ...]
    takes_out: bool
    draws: bool = False
    layouts: tuple[str, ...] = (STRIDED,)
    calls: tuple[str, ...] = ()
    callees: tuple[tuple[str, KernelFile], ...] = ()
    blocks: State = field(default=(), repr=False, compare=False)  # as they were when it was read

    @cached_property
    def key(self) -> str:
        """SHA-256 of what its program means, with its blocks: comments and the like change no verdict."""
        return key_of(self.written, self.blocks)

    @property
    def listed(self) -> frozenset[str]:
        """What it claims to serve: dtypes; `complex` numbers, where one of these is complex; SPARSE, if it takes it."""
        numbers = ["complex"] if any("complex" in dtype for dtype in self.dtypes) else []
        return frozenset((*self.dtypes, *numbers, *(layout for layout in self.layouts if layout == SPARSE)))

    @property
    def reached(self) -> tuple[KernelFile, ...]:
        """Every kernel file that it calls, and that these call, each once."""
        found = {k: None for _, callee in self.callees for k in (callee, *callee.reached)}
        return tuple(found)

    @classmethod
    def read(cls, path: Path, blocks: tuple[Path, ...] = (), now: State | None = None) -> KernelFile:
        """Raises KernelFileError if the file cannot be read or parsed."""
        try:
            source = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise KernelFileError(f"{path}: cannot read this kernel file ({error})") from error
        return cls.parse(source, path, blocks, now)

    @classmethod
    def parse(cls, source: str, path: Path, blocks: tuple[Path, ...] = (), now: State | None = None) -> KernelFile:
        """`path` only names the file in messages. blocks: directories of those that it may import, a platform's before
        the library's; now: their state, if it is known. Raises KernelFileError."""
        return cls._parsed(source, path, blocks, now or state(blocks))

    @classmethod
    @lru_cache(maxsize=4096)  # a library is read whenever it may have changed
    def _parsed(cls, source: str, path: Path, blocks: tuple[Path, ...], now: State) -> KernelFile:
        try:
            tree = syntax.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or "?"
            raise KernelFileError(
                f"{path}: line {line}: not valid Python ({getattr(error, 'msg', error)}); mend or remove the file"
            ) from error
        overloads, dtypes = (_literal_tuple(tree, name, path) for name in ("OVERLOADS", "DTYPES"))
        parameters = _wrapper_parameters(tree, path)
        try:
            linked = link(source, blocks, now)
        except LinkError as error:
            raise KernelFileError(f"{path}: {error}") from error
        return cls(
            path=path,
            written=source,
            source=linked,
            overloads=overloads,
            dtypes=dtypes,
            takes_out="out" in parameters,
            draws=PHILOX in parameters,
            layouts=_literal_tuple(tree, LAYOUTS, path, (STRIDED,)),
            calls=called_operators(tree),
            blocks=now,
        )


def _literal_tuple(tree: ast.Module, name: str, path: Path, otherwise: tuple[str, ...] = ()) -> tuple[str, ...]:
    """otherwise: what holds where the file does not say."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [name]:
            value = literal_strings(node.value)
            if value is not None:
                return value
            break
    else:
        if otherwise:
            return otherwise
    raise KernelFileError(f'{path}: {name} must be a literal tuple of strings such as {name} = ("...",)')


def _wrapper_parameters(tree: ast.Module, path: Path) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "wrapper":
            return {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    line, what, instead = no_wrapper(tree)
    raise KernelFileError(f"{path}: line {line}: {what}; {instead}" if line else f"{path}: {what}; {instead}")
