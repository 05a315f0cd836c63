"""What the forward left for the same arguments."""

CASES = {
    "aten::_scaled_dot_product_efficient_attention_backward": [
        ("f16[2,3,21,16]", "f16[2,3,21,16]", "f16[2,3,39,16]", "f16[2,3,39,16]", None, 0.0, [True, True, True, False]),
        (
            "f32[1,2,33,8]",
            "f32[1,2,33,8]",
            "f32[1,2,33,8]",
            "f32[1,2,33,8]",
            "f32[1,2,33,33]",
            0.2,
            [True, True, True, True],
        ),
        (
            "bf16[1,2,40,8]",
            "bf16[1,2,40,8]",
            "bf16[1,2,40,8]",
            "bf16[1,2,40,8]",
            None,
            0.0,
            [True, True, True, False],
            True,
        ),
        (
            "f16[4,8,21,16]",
            "f16[4,8,21,1]",
            "f16[4,8,39,1]",
            "f16[4,8,39,16]",
            None,
            0.0,
            [True, True, True, False],
        ),
    ],
}
FAULTS = {
    "dS in 16 bits where one feature is multiplied": ("FP32=fp32 or min(D, Dv) < FEW_FEATURES", "FP32=fp32"),
}
FORWARD = {
    "aten::_scaled_dot_product_efficient_attention_backward": (
        "aten::_scaled_dot_product_efficient_attention",
        {"out": 0, "logsumexp": 1, "philox_seed": 2, "philox_offset": 3},
        {"compute_log_sumexp": True},
    )
}
