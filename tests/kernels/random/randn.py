"""Types."""

CASES = {
    "aten::randn": [
        ([33, 250],),
        ([3, 1000], {"dtype": "torch.float16"}),
    ],
    "aten::randn.generator": [
        ([33, 250], {"generator": None}),
    ],
}
