"""OpInfo's samples."""

OPINFO = 4
REFUSED = {
    "aten::new_full": [("i16[2]", [3], 32768)],
}
