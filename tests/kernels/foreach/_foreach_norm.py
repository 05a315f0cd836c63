"""OpInfo's samples."""

OPINFO = 2
