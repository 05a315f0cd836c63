"""The contract for kernel files, checked on their syntax tree without executing them.

A kernel file is one Python file. It contains a docstring that begins with the schema, `OVERLOADS` and `DTYPES`
as literal tuples, `@triton.jit` kernels and one `wrapper`. If it also takes sparse tensors, it declares
`LAYOUTS = ("sparse_coo", "strided")`. Even a file that would misbehave on import can be matched, hashed and
displayed, because nothing here executes it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from traces import UserError
from traces.errors import read_problem
from verify import syntax
from verify.linking import LinkError, State, key_of, link, state
from verify.lint.names import called_operators, literal_strings, no_wrapper
from verify.lint.profile import LAYOUTS, SPARSE, STRIDED
from verify.lint.schema import PHILOX

__all__ = ["SPARSE", "KernelFile", "KernelFileError"]


class KernelFileError(UserError):
    """Raised for a kernel file that does not parse or violates the contract."""


@dataclass(frozen=True)
class KernelFile:
    """One parsed kernel file.

    Attributes:
        path: Path of the file.
        written: The text as its author wrote it.
        overloads: Overloads that it serves.
        dtypes: Dtypes that it serves.
        takes_out: True if the wrapper can write to a destination that the caller passes.
        draws: True if the wrapper takes `philox`, the key and counter for random numbers
            (verify/contract/random_state.py).
        layouts: Layouts of the tensors that it takes.
        calls: Overloads that it calls as `torch.ops.aten.NAME.OVERLOAD(...)`.
        callees: Kernel files that serve these calls, set by a library (generate/kernel_library.py). A call
            without one is not served.
        blocks: State of the block directories when the file was read.
    """

    path: Path
    written: str
    overloads: tuple[str, ...]
    dtypes: tuple[str, ...]
    takes_out: bool
    draws: bool = False
    layouts: tuple[str, ...] = (STRIDED,)
    calls: tuple[str, ...] = ()
    callees: tuple[tuple[str, KernelFile], ...] = ()
    blocks: State = field(default=(), repr=False, hash=False)

    @cached_property
    def source(self) -> str:
        """The text with the imported blocks linked in; this is the text that is judged.

        Raises:
            KernelFileError: A block import cannot be resolved, or the file redefines a linked block.
        """
        try:
            return link(self.written, now=self.blocks)
        except LinkError as error:
            raise KernelFileError(f"{self.path}: {error}") from error

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of the program's meaning, including its blocks.

        Comments and docstrings do not affect it, so they change no verdict.
        """
        return key_of(self.written, self.blocks)

    @property
    def listed(self) -> frozenset[str]:
        """Return everything that the file claims to serve.

        These are its dtypes, `complex` if one of them is complex, and SPARSE if it takes sparse tensors.
        """
        numbers = ["complex"] if any("complex" in dtype for dtype in self.dtypes) else []
        return frozenset((*self.dtypes, *numbers, *(layout for layout in self.layouts if layout == SPARSE)))

    @property
    def reached(self) -> tuple[KernelFile, ...]:
        """Return every kernel file that it calls directly or indirectly, without duplicates."""
        files = {k: None for _, callee in self.callees for k in (callee, *callee.reached)}
        return tuple(files)

    @classmethod
    def read(
        cls, path: Path, blocks: tuple[Path, ...] = (), now: State | None = None, linked: bool = True
    ) -> KernelFile:
        """Read and parse a kernel file; the arguments are those of `parse`.

        Raises:
            KernelFileError: The file cannot be read or parsed.
        """
        try:
            source = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise KernelFileError(f"{path}: cannot read this kernel file ({read_problem(error)})") from error
        return cls.parse(source, path, blocks, now, linked)

    @classmethod
    def parse(
        cls, source: str, path: Path, blocks: tuple[Path, ...] = (), now: State | None = None, linked: bool = True
    ) -> KernelFile:
        """Parse a kernel file's source.

        Args:
            source: Text of the file.
            path: Name for the file in messages.
            blocks: Directories with blocks that the file may import, a platform's before the library's.
            now: State of these directories, if it is known.
            linked: Link its blocks now. If not, a block that is missing is an error later, when `source` is read.

        Raises:
            KernelFileError: The source does not parse, or violates the contract.
        """
        file = cls._parsed(source, path, now or state(blocks))
        if linked:
            _ = file.source
        return file

    @classmethod
    @lru_cache(maxsize=4096)  # a library is read again whenever it may have changed
    def _parsed(cls, source: str, path: Path, now: State) -> KernelFile:
        try:
            tree = syntax.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or "?"
            raise KernelFileError(
                f"{path}: line {line}: not valid Python ({getattr(error, 'msg', error)}); mend or remove the file"
            ) from error
        overloads, dtypes = (_literal_tuple(tree, name, path) for name in ("OVERLOADS", "DTYPES"))
        parameters = _wrapper_parameters(tree, path)
        return cls(
            path=path,
            written=source,
            overloads=overloads,
            dtypes=dtypes,
            takes_out="out" in parameters,
            draws=PHILOX in parameters,
            layouts=_literal_tuple(tree, LAYOUTS, path, (STRIDED,)),
            calls=called_operators(tree),
            blocks=now,
        )


def _literal_tuple(tree: ast.Module, name: str, path: Path, otherwise: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a module-level tuple of strings, or `otherwise` if the file does not define it."""
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
    line, problem, instead = no_wrapper(tree)
    raise KernelFileError(f"{path}: line {line}: {problem}; {instead}" if line else f"{path}: {problem}; {instead}")
