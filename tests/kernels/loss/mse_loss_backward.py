"""Every reduction; broadcast."""

CASES = {
    "aten::mse_loss_backward": [
        ("f32[33,70]", "f32[33,70]", "f32[33,70]", 0),
        ("f32[]", "f32[33,70]", "f32[33,70]", 1),
        ("bf16[]", "bf16[40,30]{1,40}", "bf16[40,30]", 2),
        ("f64[]", "f64[7,5]", "f64[7,5]", 1),
        ("f32[]", "f32[2,1,4]", "f32[3,4]", 1),
        ("f32[2,3,4]", "f32[3,4]", "f32[2,1,4]", 0),
    ],
}
FAULTS = {
    "the mean of all": ("max(like.numel(), 1)", "max(torch.broadcast_tensors(*operands)[0].numel(), 1)"),
}
