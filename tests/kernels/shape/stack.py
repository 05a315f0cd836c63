"""Dimensions."""

OPINFO = 4
CASES = {
    "aten::stack": [
        (["f32[33,7]", "f32[33,7]{1,33}"], 1),
        (["bf16[5]", "bf16[5]", "bf16[5]"], -1),
    ],
}
