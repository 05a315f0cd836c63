"""Rows that are added to, some several times."""

OPINFO = 4
REFUSED = {"aten::index_add": [("f32[4,3]", 0, "u8[2]<4", "f32[2,3]")]}
