"""Rows and columns."""

OPINFO = 4
REFUSED = {
    "aten::index_select": [("f32[4,3]", 0, "u8[2]<4"), ("f32[]", 0, "i64[2]<1"), ("f32[4,3]", 0, "i64[1,2]<4")],
}
