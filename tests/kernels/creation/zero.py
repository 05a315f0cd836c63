"""Dense and strided."""

DERIVED = ("aten::_foreach_zero_",)
CASES = {
    "aten::zero": [
        ("f32[33,70]",),
        ("i64[5,4]{1,5}",),
        ("bool[]",),
        ("f16[4,0]",),
        ("bf16[5,6]{12,2}",),
    ],
}
