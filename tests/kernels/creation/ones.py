"""OpInfo's samples; complex numbers."""

OPINFO = 4
CASES = {
    "aten::ones": [
        ([3, 5], {"dtype": "torch.complex64"}),
    ],
}
