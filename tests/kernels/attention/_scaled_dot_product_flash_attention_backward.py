"""What the forward left for the same arguments."""

CASES = {
    "aten::_scaled_dot_product_flash_attention_backward": [
        ("f16[2,3,21,16]", "f16[2,3,21,16]", "f16[2,3,39,16]", "f16[2,3,39,16]", None, None, 21, 39, 0.0, False),
        ("bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", "bf16[1,2,40,8]", None, None, 40, 40, 0.2, True),
        ("f16[2,3,33,16]", "f16[2,3,33,16]", "f16[2,3,70,16]", "f16[2,3,70,16]", None, None, 33, 70, 0.0, False),
        ("bf16[2,6,21,16]", "bf16[2,6,21,16]", "bf16[2,2,39,16]", "bf16[2,2,39,16]", None, None, 21, 39, 0.2, True),
    ],
}
FORWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": (
        "aten::_scaled_dot_product_flash_attention",
        {"out": 0, "logsumexp": 1, "philox_seed": 6, "philox_offset": 7},
        {},
    )
}
