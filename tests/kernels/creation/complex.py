"""Broadcast, layouts."""

OPINFO = 4
CASES = {
    "aten::complex": [
        ("f32[33,70]", "f32[70]"),
        ("f64[4,5]{1,4}", "f64[4,5]{1,4}"),
        ("f32[]", "f32[3]"),
    ],
}
REFUSED = {"aten::complex": [("f32[3]", "f64[3]")]}
