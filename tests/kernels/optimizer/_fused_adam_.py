"""With amsgrad, maximize, and a gradient scaler's scale."""

tensors, squares, steps = ["f32[70]", "f32[4,5]", "f32[3]"], ["f32[70]u", "f32[4,5]u", "f32[3]u"], ["f32[]=4"] * 3
rates = {"lr": 0.01, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "eps": 1e-08}
plain, all_set = {"amsgrad": False, "maximize": False}, {"amsgrad": True, "maximize": True}
of_tensor, scaled = {"lr": "f32[]=0.01"}, {"grad_scale": "f32[]u", "found_inf": "f32[]=0"}
wide, square, part = "f64[70]", "f64[70]u", "f64(1.94)"  # steps are float32 for ATen

CASES = {
    "aten::_fused_adam_": [
        (tensors, tensors, tensors, squares, [], steps, rates | plain),
        (tensors, tensors, tensors, squares, squares, steps, rates | all_set),
        (tensors, tensors, tensors, squares, [], steps, rates | plain | scaled),
    ],
    "aten::_fused_adam_.tensor_lr": [
        (tensors, tensors, tensors, squares, [], steps, rates | of_tensor | plain),
        (tensors, tensors, tensors, squares, squares, steps, rates | of_tensor | all_set),
        ([wide], [wide], [wide], [square], [], [part], rates | {"lr": "f64[]=0.01"} | plain),
    ],
}
REFUSED = {
    "aten::_fused_adam_": [
        (["f32[4]"], ["bf16[4]"], ["f32[4]"], ["f32[4]u"], [], steps[:1], rates | plain),
        (["f32[4,3]"], ["f32[4,3]{1,4}"], ["f32[4,3]"], ["f32[4,3]u"], [], steps[:1], rates | plain),
        (["f32[4]"], ["f32[4]"], ["f32[4]"], ["f32[4]u"], ["f64[4]u"], steps[:1], rates | all_set),
    ]
}
