"""Memory formats."""

OPINFO = 4
CASES = {
    "aten::pixel_unshuffle": [
        ("f32[3,2,6,9]", 3),
        ("f32[2,3,4,6]{72,1,18,3}", 2),
    ],
}
