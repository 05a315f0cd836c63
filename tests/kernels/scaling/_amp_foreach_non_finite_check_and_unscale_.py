"""Finite and not, several tensors."""

CASES = {
    "aten::_amp_foreach_non_finite_check_and_unscale_": [
        (["f32[70]", "f32[4,5]", "f32[3]"], "f32(0)", "f32(0.25)"),
        (["f32(1, inf, 2)", "f16[70]"], "f32(0)", "f32(0.25)"),
        (["f32(1, nan, 2)"], "f32(0)", "f32(1)"),
        (["bf16[33,7]{1,33}"], "f32(1)", "f32(0.5)"),
    ],
}
