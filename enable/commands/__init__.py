"""One file a command: `command`, or `app` for a group of commands; found by location."""
