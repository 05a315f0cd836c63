"""Between types and layouts, broadcast."""

DERIVED = ("aten::_foreach_copy_",)
CASES = {
    "aten::copy_": [
        ("f32[33,70]", "bf16[33,70]{1,33}"),
        ("f32[70,130]{131,1}", "bf16[70,130]{1,70}"),
        ("f32[40,300]", "f32[40,1]"),
        ("i32[4,5]{10,2}", "f32[5]"),
        ("bool[7]", "f32(0, 1, -0., 2, nan, 0.5, 0)"),
        ("f8_e4m3fnuz[2,3,4]", "bf16[3,1]"),
        ("f32[0,4]", "f32[4]"),
        ("f64[3]", "f8_e5m2fnuz[]"),
        ("f32[5,6]~", "f32[6]"),
        ("c64[5,6]*", "c64[5,6]{1,5}"),
        ("c64[5,6]*", "c64[5,6]~"),
        ("f32[70,130]", "c64[70,130]{1,70}*~"),
    ],
}
FAULTS = {
    "the bits ignored": ("has_bits(self) or has_bits(src)", "False"),
    "the negative bit ignored": ("return t.is_conj() or t.is_neg()", "return t.is_conj()"),
    "the negative bit of the destination ignored": ("out.is_neg() != value.is_neg()", "value.is_neg()"),
    "the conjugate bit of the destination ignored": ("out.is_conj() != value.is_conj()", "value.is_conj()"),
    "both bits taken for the conjugate bit": ("opposites if negated else conjugate", "conjugate"),
}
