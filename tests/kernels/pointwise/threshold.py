"""OpInfo's samples."""

OPINFO = 4
REFUSED = {
    "aten::threshold": [("i8[3]", 300, 1), ("i8[3]", 1, -129)],
}
