"""Layouts."""

OPINFO = 4
CASES = {
    "aten::clone": [
        ("f32[33,70]{1,33}",),
        ("i16[4,5,6]{60,1,10}",),
        ("f32[2,24,11,13]", {"memory_format": "torch.channels_last"}),
        ("bf16[2,24,11,13]{3432,1,312,24}", {"memory_format": "torch.contiguous_format"}),
        ("f32[2,3,4,5]", {"memory_format": "torch.channels_last"}),
        ("f32[33,70]{1,33}~",),
        ("c64[4,5]*",),
        ("f8_e4m3fn[4,5]{1,4}",),
        ("c64[4,5]*~",),
    ],
}
FAULTS = {"the negative bit ignored": ("return t.is_conj() or t.is_neg()", "return t.is_conj()")}
