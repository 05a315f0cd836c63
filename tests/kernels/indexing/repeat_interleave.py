"""Repeats, none of some."""

CASES = {
    "aten::repeat_interleave.Tensor": [
        ("i64[2000]<5",),
        ("i32(2, 0, 0, 3, 1)",),
        ("i64[20]{3}<5",),
        ("i64(1, 0, 2)", {"output_size": 3}),
        ("i64(0, 0)",),
        ("i64[0]",),
    ],
}
