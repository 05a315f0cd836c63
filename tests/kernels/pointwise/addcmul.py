"""OpInfo's samples."""

OPINFO = 4
DERIVED = ("aten::_foreach_addcmul.Scalar", "aten::_foreach_addcmul.ScalarList")
