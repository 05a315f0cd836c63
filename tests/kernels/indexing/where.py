"""Conditions that broadcast."""

OPINFO = 4
CASES = {
    "aten::where.self": [
        ("bool[33,1]", "f32[70]", "f32[33,70]{1,33}"),
        ("bool[5]", "i64[4,5]", "f32[]"),
        ("bool[33,1]", "c64[70]", "c64[33,70]{1,33}"),
        ("bool[5]", "c64[4,5]", "f32[]"),
        ("bool[3]", "f64[3]", "c64[]"),
    ],
}
