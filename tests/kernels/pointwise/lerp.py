"""OpInfo's samples; weights below -1/2 by infinite ends."""

OPINFO = 4
CASES = {
    "aten::lerp.Tensor": [("f32(inf, inf, 1, -1, 2)", "f32(1, -1, inf, inf, 3)", "f32(-0.6, -2, -0.6, -0.25, -0.5)")],
    "aten::_foreach_lerp.List": [(["f32(1, inf)"], ["f32(inf, 1)"], ["f32(-0.6, -0.6)"])],
}
DERIVED = ("aten::_foreach_lerp.Scalar", "aten::_foreach_lerp.ScalarList", "aten::_foreach_lerp.List")
