"""Run the program as `python -m enable`."""

import sys
from pathlib import Path

# `-m` puts the working directory first on the path; a user's own `models` or `verify` there would shadow ours.
if not sys.flags.safe_path and sys.path and Path(sys.path[0] or ".").resolve() != Path(__file__).parents[1]:
    del sys.path[0]

from enable.cli import main

main()
