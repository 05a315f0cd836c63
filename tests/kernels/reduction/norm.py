"""Orders and dimensions."""

OPINFO = 4
CASES = {
    "aten::norm.ScalarOpt_dim": [
        ("f32[33,700]", None, [1]),
        ("f32[70000]", 3, [0]),
        ("bf16[4,5,6]", 1, [1], True),
        ("f64[40,50]{1,40}", 2.5, []),
        ("f32[33,70]", float("inf"), [0]),
    ],
}
