"""Broadcast, promotion, layouts; a number."""

OPINFO = 4
DERIVED = (
    "aten::_foreach_div.List",
    "aten::_foreach_div.Scalar",
    "aten::_foreach_div.ScalarList",
    "aten::_foreach_div.Tensor",
)
CASES = {
    "aten::div.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("bf16[4,1,6]", "bf16[5,1]"),
        ("f32[40,30]{1,40}", "f32[40,30]"),
        ("i64[7,5]", "f32[5]"),
        ("c64[4,5]{1,4}", "f32[5]"),
        ("c64[33]", "c64[33]"),
        ("c64(1+2j, -1, nanj, 0, infj, 3-infj)", "f32(0)"),
        ("c64(1+2j, -1, 1e30-2e30j, inf+1j, nan, 1e-30)", "c64(inf, 1-infj, 1e30+1e30j, 0, 1, 1e-30-1e-30j)"),
    ],
    "aten::div.Scalar": [
        ("f32[33,70]{1,33}", 2.5),
        ("i64[7]", 3),
        ("bf16[]", -0.5),
    ],
}
FAULTS = {
    "0 divided by its own size": (
        "length = tl.where(zero, tl.abs(c), large + small * ratio)",
        "length = large + small * ratio",
    ),
    "parts squared": ("ratio = divide(small, large)", "ratio = divide(small * large, large * large)"),
}
