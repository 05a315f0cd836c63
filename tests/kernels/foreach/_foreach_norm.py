"""OpInfo's samples."""

OPINFO = 2
REFUSED = {"aten::_foreach_norm.Scalar": [(["f32[4]"], float("nan")), (["f32[4]"], True), (["i64[4]"],)]}
