"""OpInfo's samples."""

OPINFO = 4
REFUSED = {
    "aten::full_like": [("i8[2]", -129)],
}
