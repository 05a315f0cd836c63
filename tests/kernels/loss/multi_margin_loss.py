"""Orders, margins, weights, reductions; one row and a number alone."""

CASES = {
    "aten::multi_margin_loss": [
        ("f32[9,5]", "i64[9]<5", 1, 1, None, 0),
        ("f32[70,90]{1,70}", "i64[70]<90", 2, 0.5, "f32[90]u", 1),
        ("f64[9,5]", "i64[9]<5", 2, -0.25, "f64[5]u", 2),
        ("f32[5]", "i64[]<5", 1, 1, None, 0),
        ("f32[2,1500]", "i64[2]<1500"),
    ],
}
FAULTS = {
    "its own class counts": (" & (cols[None, :] != target[:, None])", ""),
    "no square": ("z * z if SQUARE else z", "z"),
    "no weights": ("loss * weight", "loss"),
}
