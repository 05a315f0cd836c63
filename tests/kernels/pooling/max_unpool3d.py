"""A batch, and none."""

OPINFO = 4
