"""Decay, maximize and a gradient scaler's scale; steps are float32 for ATen."""

CASES = {
    "aten::_fused_adagrad_": [
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]u", "f32[4,5]u", "f32[3]u"],
            ["f32[]=4", "f32[]=4", "f32[]=4"],
            {"lr": 0.01, "lr_decay": 0.01, "weight_decay": 0.1, "eps": 1e-08, "maximize": False},
        ),
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]u", "f32[4,5]u", "f32[3]u"],
            ["f32[]=4", "f32[]=4", "f32[]=4"],
            {
                "lr": 0.01,
                "lr_decay": 0.01,
                "weight_decay": 0.1,
                "eps": 1e-08,
                "maximize": True,
                "grad_scale": "f32[]u",
                "found_inf": "f32[]=0",
            },
        ),
    ],
    "aten::_fused_adagrad_.tensor_lr": [
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]u", "f32[4,5]u", "f32[3]u"],
            ["f32[]=4", "f32[]=4", "f32[]=4"],
            {"lr": "f32[]=0.01", "lr_decay": 0.01, "weight_decay": 0.1, "eps": 1e-08, "maximize": False},
        ),
        (
            ["f64[70]"],
            ["f64[70]"],
            ["f64[70]u"],
            ["f64(1.94)"],
            {"lr": "f64[]=0.01", "lr_decay": 0.5, "weight_decay": 0.1, "eps": 1e-08, "maximize": False},
        ),
    ],
}
rates = {"lr": 0.01, "lr_decay": 0.01, "weight_decay": 0.1, "eps": 1e-08, "maximize": False}
REFUSED = {
    "aten::_fused_adagrad_": [
        (["f64[4]"], ["f32[4]"], ["f32[4]"], ["f32[]=4"], rates),
        (["f32[4]"], ["f32[4]"], ["f32[4]", "f32[4]"], ["f32[]=4"], rates),
        (["f32[4]{2}"], ["f32[4]{2}"], ["f32[4]{2}"], ["f32[]=4"], rates),
    ]
}
