"""Broadcast, layouts."""

OPINFO = 4
CASES = {
    "aten::polar": [
        ("f32[33,70]u", "f32[70]"),
        ("f64[4,5]{1,4}u", "f64[4,5]{1,4}"),
        ("f32[]u", "f32[3]"),
    ],
}
FAULTS = {
    "parts in each other's place": (
        "size * tl.cos(angle), size * tl.sin(angle)",
        "size * tl.sin(angle), size * tl.cos(angle)",
    )
}
REFUSED = {"aten::polar": [("f32[3]", "f64[3]")]}
