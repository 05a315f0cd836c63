"""Between types and layouts, broadcast."""

DERIVED = ("aten::_foreach_copy_",)
CASES = {
    "aten::copy_": [
        ("f32[33,70]", "bf16[33,70]{1,33}"),
        ("i32[4,5]{10,2}", "f32[5]"),
        ("bool[7]", "f32(0, 1, -0., 2, nan, 0.5, 0)"),
        ("f64[2,3,4]", "i8[3,1]"),
        ("f32[0,4]", "f32[4]"),
        ("f16[]", "f64[]"),
    ],
}
