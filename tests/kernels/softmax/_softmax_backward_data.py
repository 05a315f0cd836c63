"""Along rows and columns."""

CASES = {
    "aten::_softmax_backward_data": [
        ("f64[4,37]", "f64[4,37]u", 1, "torch.float64"),
        ("f32[33,70]", "f32[33,70]u", 1, "torch.float32"),
        ("f32[33,70]", "f32[33,70]u", 0, "torch.float32"),
        ("bf16[4,5,130]", "bf16[4,5,130]u", -1, "torch.bfloat16"),
        ("f32[5,3000]", "f32[5,3000]u", 1, "torch.float32"),
        ("f32[66,70]", "f32[66,70]u", 1, "torch.float32"),
    ],
}
REFUSED = {
    "aten::_softmax_backward_data": [
        ("f32[2,1]", "f32[2,3]", 1, "torch.float32"),
        ("f64[2,3]", "f32[2,3]", 1, "torch.float64"),
        ("f32[2,3]", "f32[2,3]", 1, "torch.float64"),
    ],
}
