"""OpInfo's samples."""

import torch

OPINFO = 4
REFUSED = {
    "aten::scalar_tensor": [(256, {"dtype": "torch.uint8", "device": torch.device("meta")})],
}
