"""OpInfo's samples; complex numbers."""

import torch

OPINFO = 4
CASES = {
    "aten::full": [
        ([3, 5], 2 - 1j),
    ],
}
REFUSED = {
    "aten::full": [([2], 300, {"dtype": "torch.int8", "device": torch.device("meta")})],
}
