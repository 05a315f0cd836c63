"""Exceptions for errors that the user can fix."""


class UserError(Exception):
    """An error that the user can fix.

    The message is one line: the bad value, the valid choices and the next command. The CLI prints it to stderr and
    exits with status 2.
    """


class TraceError(UserError):
    """A trace that is missing, damaged, hostile or in an unknown version; the message names the file and the field."""
