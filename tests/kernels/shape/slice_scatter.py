"""Slices with steps."""

OPINFO = 4
CASES = {
    "aten::slice_scatter": [
        ("f32[33,70]", "f32[33,20]", 1, 3, 63, 3),
        ("f32[70,5]{1,70}", "f32[3,5]", 0, -3),
        ("f32[5,3]{6,2}@7", "f32[2,3]", 0, 1, 3),
    ],
}
REFUSED = {"aten::slice_scatter": [("f32[4,3]", "f32[2,3]", 0, 0, 3)]}
