"""Items of no rows, of more than the length, all; rows of two dimensions more, of none; integers."""

CASES = {
    "aten::_jagged_to_padded_dense_forward": [
        ("f32[7,3]", ["i64(0, 2, 2, 7)"], [4], -1.0),
        ("bf16[7]", ["i32(0, 7)"], [9], 0.5),
        ("f64[5,2,3]{6,1,2}", ["i64(1, 2, 5)"], [3]),
        ("i64[7,3]", ["i64(0, 2, 2, 7)"], [6], 2.0),
        ("bool[4,2]", ["i64(0, 4)"], [6], 1.0),
        ("f32[900,40]", ["i64(0, 300, 310, 900)"], [320]),
    ],
}
FAULTS = {
    "rows of the next item": ("(row < end) & (row >= 0)", "(row >= 0)"),
    "padded with 0": ("number_value(padding, TYPE).to(x.dtype)", "0"),
    "items of one length": ("row = begin + position", "row = item * length + position"),
}
