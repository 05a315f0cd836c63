"""`python -m enablekit`, and the installed programs."""

import gc

# Importing PyTorch makes objects that are never garbage; looking through them takes a seventh of a command's start.
gc.set_threshold(50_000, 20, 100)

from enable.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
