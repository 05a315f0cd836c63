"""Zeros of both signs, NaN, rows of them; dense dimensions; no dimension, no elements."""

OPINFO = 3
CASES = {
    "aten::_to_sparse": [
        ("f32(0, -0., nan, 0.3, inf, 0)",),
        ("i32[5,7,3]{1,5,35}",),
        ("bool[40,50]",),
        ("bf16[6,3]<2", {"dense_dim": 1}),
        ("f32[]",),
        ("f64[0,3]",),
    ],
    "aten::_to_sparse.sparse_dim": [
        ("i64[9,4,2]{1,9,36}<2", 1),
        ("f16[9,4,2]<2", 2),
        ("f32[3,0]", 1),
        ("bool[1100,2]", 1),
    ],
}
FAULTS = {
    "not marked as coalesced": ("is_coalesced=True", "is_coalesced=False"),
    "the last entry is lost": ("starts.shape[0] - 1).item()", "starts.shape[0] - 1).item() - 1"),
}
