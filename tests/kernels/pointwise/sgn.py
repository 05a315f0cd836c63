"""Layouts and special values."""

infinite = ["1+infj", "inf-1j", "-inf+infj", "nan+infj", "1+nanj", "0", "3-4j", "-inf"]
CASES = {
    "aten::sgn": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, -inf, -0., 0.5, -1.5)",),
        ("f64[7,9]",),
        ("i32[40,9]",),
        (f"c64({', '.join(infinite * 2)})",),  # ATen's own answer for fewer than a vector is NaN
    ],
}
