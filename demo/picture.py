"""Draw the output of a command as a picture of a terminal: COMMAND | python demo/picture.py TITLE FILE.svg [LINES]."""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text


def main() -> None:
    """Read the output from stdin; leave out the middle of more than LINES lines."""
    title, path, most = sys.argv[1], Path(sys.argv[2]), int((*sys.argv[3:], 40)[0])
    lines = sys.stdin.read().rstrip("\n").split("\n")
    if len(lines) > most:
        lines[most // 2 : len(lines) - most // 2] = ["..."]
    console = Console(record=True, width=max(map(len, lines)), file=io.StringIO())
    for line in lines:
        text = Text(line)
        text.highlight_regex(r"\bPASS\b", "green")
        text.highlight_regex(r"\b(WRONG|COMPILE_ERROR|RUNTIME_ERROR|CHEAT|CRASH|TIMEOUT)\b", "red")
        console.print(text)
    drawing = console.export_svg(title=title, theme=MONOKAI, unique_id="terminal")
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL))  # fonts of another host


main()
