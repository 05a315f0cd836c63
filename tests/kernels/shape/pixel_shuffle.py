"""Memory formats."""

OPINFO = 4
CASES = {
    "aten::pixel_shuffle": [
        ("f32[3,18,5,4]", 3),
        ("f32[2,8,3,5]{120,1,40,8}", 2),
    ],
}
