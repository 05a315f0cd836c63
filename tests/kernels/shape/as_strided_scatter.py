"""Places between the elements, beside them, of expanded tensors and of none."""

OPINFO = 4
CASES = {
    "aten::as_strided_scatter": [
        ("f32[33,70]", "f32[30,40]", [30, 40], [70, 1], 3),
        ("bf16[9,5]{1,9}", "f32[3,4]", [3, 4], [2, 7], None),
        ("f32[20]@7", "i64[5,4]", [5, 4], [1, 5], 2),
        ("f32[4]@9", "f32[5]", [5], [2], 0),
        ("i64[4,3]{0,1}", "i64[3,2]", [3, 2], [4, 1], 1),
        ("f32[6]", "f32[0,3]", [0, 3], [3, 1], None),
        ("f32[0,3]", "f32[0]", [0], [1], None),
    ],
}
FAULTS = {
    "from the first element of the tensor on": ("view.stride(), view.storage_offset())", "view.stride(), 0)"),
    "the memory is not copied": (
        "fill(memory.narrow(0, first, n), self.as_strided((n,), (1,), first))",
        "fill(memory, 0)",
    ),
}
REFUSED = {"aten::as_strided_scatter": [("f32[6]", "f32[2,2]", [2, 2], [0, 1])]}
