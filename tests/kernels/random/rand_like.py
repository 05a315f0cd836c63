"""Types and layouts."""

CASES = {
    "aten::rand_like": [
        ("f32[250,33]{1,250}",),
        ("f32[33,250]", {"dtype": "torch.bfloat16"}),
    ],
    "aten::rand_like.generator": [
        ("f32[33,250]", {"generator": None}),
    ],
}
