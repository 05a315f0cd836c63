"""Kernels for operators: the library, and the state machine that lets an LLM write or mend what fails."""

from pathlib import Path

BLOCKS = Path(__file__).parent / "blocks"  # the directory that kernel files import as `blocks`
