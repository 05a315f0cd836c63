"""Record what Triton's compiler translates of a kernel file for one call.

The compiler follows only the branch that a constexpr selects, and only functions that a launch reaches. So a platform's
dialect is judged by what was translated, and not by the whole file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ELEMENT = re.compile(r"(?:\b|(?<=x))(?:bf16|f\d+\w*|i\d+)\b")  # as in tensor<64xf32> and !tt.ptr<f32>


class Translated:
    """Names, by line, and element types that the launches of one request need, as far as they are asked for."""

    def __init__(self) -> None:
        self._marks = frozenset[tuple[str, str]]()  # position and type, as in a request's `marks`
        self._positions = frozenset[str]()
        self._by_variant: dict[str, set[str]] = {}  # positions and types in a compiled form
        self._now = set[str]()
        self._met = set[str]()

    def ask(self, marks: Iterable[str]) -> None:
        """Begin a request.

        Args:
            marks: Parts to look for, as `ROLE:LINE:NAME:TYPE`. NAME is a name or the last part of an attribute
                chain, and empty for any part of the line. TYPE is an element type that the program must contain,
                too; empty for any.
        """
        self._met = set()
        wanted = frozenset((mark.rpartition(":")[0], mark.rpartition(":")[2]) for mark in marks)
        if wanted != self._marks:
            self._marks, self._by_variant = wanted, {}
            self._positions = frozenset(position for position, _ in wanted)

    @property
    def on(self) -> bool:
        """Return True if this request looks for anything."""
        return bool(self._marks)

    @contextmanager
    def recording(self, variant: str) -> Iterator[bool]:
        """Record what is translated meanwhile for a compiled form.

        Yields:
            True if the form has to be translated, and not taken from a cache: it is the first launch of this form.
        """
        new = self.on and variant not in self._by_variant
        self._now = self._by_variant.setdefault(variant, set()) if self.on else set()
        try:
            yield new
        finally:
            self._met |= self._among(self._now)

    def visit(self, file: str, line: int, node: ast.AST) -> None:
        """Record a node that the compiler translates."""
        at = f"{Path(file).stem}:{line}:"
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        self._now |= {at, at + name} & self._positions

    def program(self, text: str) -> None:
        """Record the element types in a translated program."""
        self._now |= {*_ELEMENT.findall(text)}

    def met(self) -> list[str]:
        """Return the marks that were met in this request, sorted."""
        return sorted(self._met)

    def _among(self, parts: set[str]) -> set[str]:
        return {f"{at}:{kind}" for at, kind in self._marks if at in parts and (not kind or kind in parts)}


translated = Translated()


def patch_translation() -> None:
    """Make the compiler report the nodes that it translates."""
    from triton.compiler.code_generator import CodeGenerator
    from triton.compiler.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    visit = CodeGenerator.visit

    def visit_and_record(self: Any, node: Any) -> Any:
        if translated.on and hasattr(node, "lineno"):
            translated.visit(self.file_name, self.begin_line + node.lineno, node)
        return visit(self, node)

    def recording(make_ir: Any) -> Any:
        def make_and_record(self: Any, *args: Any, **kwargs: Any) -> Any:
            module = make_ir(self, *args, **kwargs)
            if translated.on:
                translated.program(str(module))
            return module

        return make_and_record

    CodeGenerator.visit = visit_and_record
    for source in (GluonASTSource, ASTSource):
        source.make_ir = recording(source.make_ir)
