"""OpInfo's samples."""

OPINFO = 4
DERIVED = ("aten::_foreach_addcdiv.Scalar", "aten::_foreach_addcdiv.ScalarList")
