"""Batches and layouts."""

CASES = {
    "aten::_euclidean_dist": [
        ("f32[4,7]", "f32[5,7]"),
        ("f64[2,20,33]", "f64[2,18,33]"),
        ("f32[20,3]{1,20}", "f32[5,3]"),
    ],
}
FAULTS = {"no root": ("total = root(total)", "total = total * 1")}
