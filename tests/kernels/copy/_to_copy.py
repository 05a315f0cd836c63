"""Types, layouts and memory formats."""

CASES = {
    "aten::_to_copy": [
        ("f8_e5m2[5,3,2]", {"dtype": "torch.float16"}),
        ("f32[40,30]{1,40}",),
        ("f32[80,130]{1,80}", {"dtype": "torch.bfloat16", "memory_format": "torch.contiguous_format"}),
        ("f32[80,130]{1,80}", {"dtype": "torch.uint8", "memory_format": "torch.contiguous_format"}),
        ("bool[7,5]{5,1}@3", {"dtype": "torch.int32"}),
        ("f32[2,3,4,5]", {"memory_format": "torch.channels_last"}),
        ("f32(nan, inf, -inf, -0., 3.7)", {"dtype": "torch.bfloat16"}),
        ("f32(nan, inf, -inf, 463, 61440, -0., 1e-9)", {"dtype": "torch.float8_e4m3fn"}),
        ("f32[5]=3~", {"dtype": "torch.uint8"}),
        ("f32[33,70]~", {"dtype": "torch.float64"}),
        ("c64[5]*", {"dtype": "torch.complex128"}),
        ("c64(1j, 0j, -0j, 2, nan)", {"dtype": "torch.bool"}),
    ],
}
