"""Momentum or none, Nesterov's, the first step."""

CASES = {
    "aten::_fused_sgd_": [
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            {
                "weight_decay": 0.1,
                "momentum": 0.9,
                "lr": 0.01,
                "dampening": 0.1,
                "nesterov": False,
                "maximize": False,
                "is_first_step": False,
            },
        ),
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            {
                "weight_decay": 0.1,
                "momentum": 0.9,
                "lr": 0.01,
                "dampening": 0.0,
                "nesterov": True,
                "maximize": True,
                "is_first_step": False,
            },
        ),
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            [],
            {
                "weight_decay": 0.1,
                "momentum": 0.0,
                "lr": 0.01,
                "dampening": 0.1,
                "nesterov": False,
                "maximize": False,
                "is_first_step": False,
            },
        ),
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            {
                "weight_decay": 0.1,
                "momentum": 0.9,
                "lr": 0.01,
                "dampening": 0.1,
                "nesterov": False,
                "maximize": False,
                "is_first_step": True,
                "grad_scale": "f32[]u",
                "found_inf": "f32[]=0",
            },
        ),
    ],
    "aten::_fused_sgd_.tensor_lr": [
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            {
                "weight_decay": 0.1,
                "momentum": 0.9,
                "lr": "f32[]=0.01",
                "dampening": 0.1,
                "nesterov": False,
                "maximize": False,
                "is_first_step": False,
            },
        ),
        (
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            ["f32[70]", "f32[4,5]", "f32[3]"],
            {
                "weight_decay": 0.1,
                "momentum": 0.9,
                "lr": "f32[]=0.01",
                "dampening": 0.0,
                "nesterov": True,
                "maximize": True,
                "is_first_step": False,
            },
        ),
    ],
}
