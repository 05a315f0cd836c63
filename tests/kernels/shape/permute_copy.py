"""Orders, in tiles of two of the dimensions."""

OPINFO = 4
CASES = {
    "aten::permute_copy": [
        ("f32[3,33,70]", [2, 0, -2]),
        ("i16[3,40,5,33]", [3, 2, 1, 0]),
        ("f16[2,70,4,37]", [0, 2, 3, 1]),
    ],
}
