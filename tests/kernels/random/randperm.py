"""Long and short, and types."""

CASES = {
    "aten::randperm": [
        (3000,),
        (5,),
        (200, {"dtype": "torch.float16"}),
        (100, {"dtype": "torch.uint8"}),
    ],
    "aten::randperm.generator": [
        (700, {"generator": None, "dtype": "torch.int32"}),
    ],
}

FAULTS = {
    "not in another order": ("ordered, order])", "order, ordered])"),
    "a few keys": ("return shares.to(tl.int64) + low", "return shares.to(tl.int64) & 7"),
    "the keys of another": ("source=(random_int64, *philox)", "source=(random_int64, 7, 7)"),
}
