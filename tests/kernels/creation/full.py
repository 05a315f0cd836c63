"""OpInfo's samples; complex numbers."""

OPINFO = 4
CASES = {
    "aten::full": [
        ([3, 5], 2 - 1j),
    ],
}
