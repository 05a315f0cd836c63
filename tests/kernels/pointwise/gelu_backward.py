"""Both formulas."""

CASES = {
    "aten::gelu_backward": [
        ("f32[33,70]", "f32[33,70]"),
        ("f32[33,70]", "f32[33,70]", {"approximate": "tanh"}),
        ("bf16[40,30]{1,40}", "bf16[40,30]{1,40}"),
        ("f16[4,5]", "f16[4,5]{1,4}", {"approximate": "tanh"}),
    ],
}
