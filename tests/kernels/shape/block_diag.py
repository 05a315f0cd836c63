"""Blocks of several ranks and types."""

OPINFO = 4
CASES = {
    "aten::block_diag": [
        (["f32[33,7]", "f32[5]", "f32[]", "f32[7,3]{1,7}"],),
        (["i64[2,3]", "f32[1,4]"],),
    ],
}
