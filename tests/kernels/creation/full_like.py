"""OpInfo's samples."""

OPINFO = 4
