"""Rows that are added to, some several times."""

OPINFO = 4
