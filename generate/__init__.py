"""Generate kernels: the kernel library, and the state machine in which an LLM writes or repairs kernels."""

from pathlib import Path

BLOCKS = Path(__file__).parent / "blocks"  # kernel files import modules in this directory from `blocks`
