"""OpInfo's samples; complex numbers."""

OPINFO = 4
CASES = {
    "aten::zeros": [
        ([3, 5], {"dtype": "torch.complex64"}),
    ],
}
