"""The subcommands: each module defines `command`, or `app` for a group, and is discovered by its file name."""
