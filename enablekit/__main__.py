"""`python -m enablekit`, and what the installed programs run."""

from enable.cli import main

if __name__ == "__main__":
    main()
