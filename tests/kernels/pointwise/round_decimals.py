"""Both signs of decimals."""

CASES = {
    "aten::round.decimals": [
        ("f32[33,70]", {"decimals": 2}),
        ("f64[33,70]", {"decimals": -1}),
        ("f32[9]", {"decimals": 0}),
    ],
}
