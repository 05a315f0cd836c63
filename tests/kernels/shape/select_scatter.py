"""Dimensions."""

OPINFO = 4
CASES = {
    "aten::select_scatter": [
        ("f32[33,70]", "f32[33]", 1, 3),
        ("f32[70,5]{1,70}", "f32[5]", 0, -3),
        ("f32[5,3]{6,2}@7", "f32[3]", 0, 2),
    ],
}
REFUSED = {"aten::select_scatter": [("f32[4,3]", "f32[2]", 0, 0)]}
