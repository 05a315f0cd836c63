"""Transposed operands, sizes that fill no tile, sums past 16 bits, nothing to add."""

CASES = {
    "aten::_int_mm": [
        ("i8[17,40]", "i8[40,24]"),
        ("i8[33,64]{1,33}", "i8[64,40]{1,64}"),
        ("i8[3,600]=127", "i8[600,5]=-128"),
        ("i8[300,264]", "i8[264,200]"),
        ("i8[4,0]", "i8[0,3]"),
    ],
}
FAULTS = {
    "the last part of a sum": ("tl.dot(a, b, acc, out_dtype=tl.int32)", "tl.dot(a, b, out_dtype=tl.int32)"),
    "columns for rows": ("k[None, :] * a_stride[1]", "k[None, :] * a_stride[0]"),
}
