"""What the forward left for the same arguments."""

CASES = {
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": [
        ("f32[2,2,21,16]", "f32[2,2,21,16]", "f32[2,2,39,16]", "f32[2,2,39,16]", 0.0, False),
        ("bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", 0.0, True),
        (
            "f32[1,2,33,8]",
            "f32[1,2,33,8]",
            "f32[1,2,33,8]",
            "f32[1,2,33,8]",
            0.0,
            False,
            {"attn_mask": "f32[1,1,33,33]", "scale": 0.5},
        ),
    ],
}
FORWARD = {
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        {"out": 0, "logsumexp": 1},
        {},
    )
}
REFUSED = {
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": [
        ("f32[2,2,5,8]", "f32[2,4,5,8]", "f32[2,4,6,8]", "f32[2,4,6,8]", "f32[2,4,5,8]", "f32[2,4,5]", 0.0, False)
    ],
}
