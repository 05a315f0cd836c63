"""Types and layouts."""

CASES = {
    "aten::randn_like": [
        ("f32[250,33]{1,250}",),
        ("f32[33,250]", {"dtype": "torch.bfloat16"}),
    ],
    "aten::randn_like.generator": [
        ("f32[33,250]", {"generator": None}),
    ],
}
