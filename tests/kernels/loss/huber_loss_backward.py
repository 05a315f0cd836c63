"""Every reduction; broadcast."""

CASES = {
    "aten::huber_loss_backward": [
        ("f32[33,70]", "f32[33,70]", "f32[33,70]", 0, 0.5),
        ("f32[]", "f32[33,70]", "f32[33,70]", 1, 0.5),
        ("bf16[]", "bf16[40,30]{1,40}", "bf16[40,30]", 2, 0.5),
        ("f64[]", "f64[7,5]", "f64[7,5]", 1, 0.5),
        ("f32[]", "f32[2,1,4]", "f32[3,4]", 1, 0.5),
        ("f32[2,3,4]", "f32[3,4]", "f32[2,1,4]", 0, 0.5),
    ],
}
FAULTS = {
    "the mean of all": ("max(like.numel(), 1)", "max(torch.broadcast_tensors(*operands)[0].numel(), 1)"),
}
