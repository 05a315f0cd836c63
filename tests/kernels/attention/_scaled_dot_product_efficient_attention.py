"""With a bias, causal, with dropout."""

CASES = {
    "aten::_scaled_dot_product_efficient_attention": [
        ("f16[2,3,21,16]", "f16[2,3,39,16]", "f16[2,3,39,16]", None, True),
        ("f32[1,2,33,8]", "f32[1,2,33,8]", "f32[1,2,33,8]", "f32[1,2,33,33]", True),
        ("bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", None, True, 0.2, True),
    ],
    "aten::_scaled_dot_product_cudnn_attention": [
        ("f16[2,3,21,16]", "f16[2,3,39,16]", "f16[2,3,39,16]", None, True),
        ("bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", None, True, 0.2, True),
        ("bf16[2,6,21,16]", "bf16[2,2,39,16]", "bf16[2,2,39,16]", None, True),
    ],
}
