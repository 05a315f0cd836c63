"""Causal or not, with dropout."""

CASES = {
    "aten::_scaled_dot_product_flash_attention": [
        ("f16[2,3,21,16]", "f16[2,3,39,16]", "f16[2,3,39,16]"),
        ("bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", 0.2, True),
        ("f16[2,3,1,16]", "f16[2,3,70,16]", "f16[2,3,70,16]", 0.0, True),
    ],
}
