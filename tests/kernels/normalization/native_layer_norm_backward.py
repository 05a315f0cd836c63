"""What the forward left; gradients that are asked for and not."""

CASES = {
    "aten::native_layer_norm_backward": [
        ("f32[33,70]", "f32[33,70]", [70], "f32[70]", "f32[70]", [True, True, True]),
        ("f32[33,70]", "f32[33,70]", [70], "f32[70]", None, [True, True, False]),
        ("f32[6,5,130]", "f32[6,5,130]", [130], None, None, [True, False, False]),
    ],
}
FORWARD = {"aten::native_layer_norm_backward": ("aten::native_layer_norm", {"mean": 1, "rstd": 2}, {"eps": 1e-05})}
REFUSED = {
    "aten::native_layer_norm_backward": [
        ("f32[2,1]", "f32[2,5]", [5], "f32[2,1]", "f32[2,1]", None, None, [True, False, False]),
        ("bf16[4,5]", "f32[4,5]", [5], "f32[4,1]", "f32[4,1]", None, None, [True, False, False]),
        ("f32[4,5]", "f32[4,5]", [5], "f32[1,1]", "f32[4,1]", None, None, [True, False, False]),
    ],
}
