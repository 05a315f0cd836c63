"""Tall, wide, square; batches that lie otherwise; more than a tile; zeros; no elements."""

OPINFO = 3
CASES = {
    "aten::geqrf": [
        ("f64[2,3,3]",),
        ("f32[70,40]",),
        ("f32[5,35]{1,5}",),
        ("f64[2,2,7,4]{56,28,1,7}",),
        ("f32[4,3]=0",),
        ("f32[2,3,0]",),
    ],
}
FAULTS = {
    "the other sign": ("tl.where(alpha >= 0, -norm, norm)", "norm"),
    "columns of the first tile": (
        "for right in range(k + 1, n, BLOCK)",
        "for right in range(k + 1, min(n, 32), BLOCK)",
    ),
}
