"""Rows and columns."""

OPINFO = 4
REFUSED = {
    "aten::index_select": [("f32[]", 0, "i64[2]<1")],
}
