"""OpInfo's samples."""

OPINFO = 4
DERIVED = ("aten::_foreach_lerp.Scalar", "aten::_foreach_lerp.ScalarList", "aten::_foreach_lerp.List")
