"""Groups of rows, columns and what is summed over, some of them empty; no groups; more columns than are in groups."""

CASES = {
    "aten::_grouped_mm": [
        ("bf16[40,48]", "bf16[3,48,32]", "i32(5, 5, 40)"),
        ("f32[130,64]", "f32[4,64,96]{6144,1,64}", "i32(1, 70, 100, 130)"),
        ("f16[17,24]", "f16[2,24,8]", "i32(16, 17)"),
        ("bf16[3,40,64]", "bf16[64,48]{1,64}", "i32(7, 40, 48)"),
        ("f32[2,16,8]", "f32[8,32]", "i32(0, 32)"),
        ("bf16[40,64]", "bf16[64,48]", "i32(7, 7, 64)"),
        ("f32[72,96]{1,72}", "f32[96,68]", "i32(40, 96)"),
        ("f32[3,33,32]", "f32[3,32,40]"),
        ("f16[2,20,72]", "f16[2,72,24]", {"out_dtype": "torch.float16"}),
        ("bf16[8,16]", "bf16[24,8]", "i32(4, 8)"),
        ("f32[0,96]", "f32[0,68]", "i32()"),
    ],
}
FAULTS = {
    "the first group": ("b_ptr += group.to(tl.int64) * b_stride[0]", "b_ptr += group.to(tl.int64) * 0"),
    "from the first on": ("for at in range(start, end, BLOCK_K)", "for at in range(start * 0, end, BLOCK_K)"),
}
REFUSED = {"aten::_grouped_mm": [("bf16[8,16]", "bf16[3,24,8]", "i32(4, 8, 8)")]}
