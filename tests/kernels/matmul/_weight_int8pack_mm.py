"""Each dtype, tiles that are not full; ATen's own takes multiples of 16 alone."""

CASES = {
    "aten::_weight_int8pack_mm": [
        ("f32[4,48]", "i8[32,48]", "f32[32]"),
        ("bf16[17,96]", "i8[48,96]", "bf16[48]"),
        ("f16[3,32]", "i8[16,32]", "f16[16]"),
        ("bf16[40,2048]", "i8[160,2048]", "bf16[160]"),
    ],
}
FAULTS = {
    "one scale for all": ("scales_ptr + cols * stride_values(strides[2], PLAIN)[0]", "scales_ptr + cols * 0"),
    "weights without a sign": ("b.to(a.dtype), acc)", "(b & 127).to(a.dtype), acc)"),
}
REFUSED = {
    "aten::_weight_int8pack_mm": [
        ("f32[4,48]", "i8[32,48]", "f32[32]{2}"),
        ("f32[4,48]", "i8[32,48]", "f32[32]{0}"),
        ("f32[4,48]{1,4}", "i8[32,48]", "f32[32]"),
    ]
}
