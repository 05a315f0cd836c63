"""Sizes that chunks divide, and that they do not; large ones that 16 divides, and that it does not."""

CASES = {
    "aten::_chunk_cat": [
        (["f32[33,7]", "f32[4,700]", "f32[5]"], 0, 3),
        (["bf16[2,5,2]{1,2,10}", "bf16[2,3]"], 1, 2),
        (["f32[2049,2049]", "f32[3]"], 0, 2),
        (["i8[4096,512]", "i8[2050,1024]"], 0, 2),
        (["i64[3]", "i64[2]", "i64[9]", "i64[8]", "i64[7]"], 0, 5),
    ],
}
FAULTS = {"no zeros": ("inside & (i + lane < size)", "inside & (i + lane < size - 1)")}
