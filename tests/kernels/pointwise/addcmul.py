"""OpInfo's samples."""

OPINFO = 4
DERIVED = ("aten::_foreach_addcmul.Scalar", "aten::_foreach_addcmul.ScalarList")
REFUSED = {
    "aten::addcmul": [("i8[3]", "i8[3]", "i8[3]", {"value": 300})],
}
