"""Momentum or none, Nesterov's, the first step."""

tensors = ["f32[70]", "f32[4,5]", "f32[3]"]
rates = {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.01, "dampening": 0.1}
flags = {"nesterov": False, "maximize": False, "is_first_step": False}
nesterov = {"dampening": 0.0, "nesterov": True, "maximize": True}
first = {"is_first_step": True, "grad_scale": "f32[]u", "found_inf": "f32[]=0"}
of_tensor = {"lr": "f32[]=0.01"}

CASES = {
    "aten::_fused_sgd_": [
        (tensors, tensors, tensors, rates | flags),
        (tensors, tensors, tensors, rates | flags | nesterov),
        (tensors, tensors, [], rates | flags | {"momentum": 0.0}),
        (tensors, tensors, tensors, rates | flags | first),
    ],
    "aten::_fused_sgd_.tensor_lr": [
        (tensors, tensors, tensors, rates | of_tensor | flags),
        (tensors, tensors, tensors, rates | of_tensor | flags | nesterov),
    ],
}
REFUSED = {
    "aten::_fused_sgd_": [
        (["f32[4]"], ["f32[4]"], ["bf16[4]"], rates | flags),
        (["f32[4]"], ["f32[4]"], ["f32[4]"], rates | flags | {"momentum": 0.0}),
        (["f32[4]{2}"], ["f32[4]"], [], rates | flags | {"momentum": 0.0}),
    ]
}
