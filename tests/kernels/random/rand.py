"""Types."""

CASES = {
    "aten::rand": [
        ([33, 250],),
        ([3, 1000], {"dtype": "torch.float16"}),
    ],
    "aten::rand.generator": [
        ([33, 250], {"generator": None}),
    ],
}
