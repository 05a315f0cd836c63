"""Probabilities in a number, in tensors, of the elements themselves."""

CASES = {
    "aten::bernoulli": [
        ("f32[33,250]u",),
        ("bf16[33,250]u",),
    ],
    "aten::bernoulli.p": [
        ("f32[33,250]", 0.3),
        ("f32[250,33]{1,250}", 0.01),
    ],
    "aten::bernoulli.Tensor": [
        ("f32[33,250]", "f32[250]u"),
    ],
}
REFUSED = {"aten::bernoulli": [("i64[4]<2",)], "aten::bernoulli.Tensor": [("f32[4]", "i64[4]<2")]}
