"""Orders; batches that are broadcast; layouts; no columns; infinities where ATen multiplies and where it does not."""

CASES = {
    "aten::_cdist_forward": [
        ("f32[4,7]", "f32[5,7]", 2.0, None),
        ("f32[2,1,20,33]", "f32[3,18,33]", 1.0, None),
        ("f64[20,3]{1,20}", "f64[5,3]", 0.0, 1),
        ("f32[4,20]", "f32[2,5,20]", 3.5, None),
        ("f32[4,20]", "f32[5,20]", float("inf"), 2),
        ("f32[40,9]", "f32[30,9]", 2.0, 0),
        ("f32[40,1]", "f32[3,1]=inf", 2.0, None),
        ("f32[4,2]", "f32[5,2]=inf", 2.0, 1),
        ("f32[40,1]", "f32[30,1]=inf", 2.0, 2),
        ("f32[4,0]", "f32[5,0]", 0.5, None),
    ],
}
FAULTS = {
    "no root": ("total = root(total)", "total = total * 1"),
    "infinities of differences": ("compute_mode == 1 or", "compute_mode == 3 or"),
    "infinities of products": ("products=p == 2 and", "products=p == 2 or"),
    "a row short": ("rows < m", "rows < m - 1"),
}
