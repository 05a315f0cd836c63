"""The one exception family for a user's mistake."""


class UserError(Exception):
    """A mistake the user can mend. The message is one line: the bad value, the choices, the next command.

    The CLI prints it to stderr and exits with 2.
    """


class TraceError(UserError):
    """A trace that is missing, damaged, hostile or of an unknown version; the message names file and field."""
