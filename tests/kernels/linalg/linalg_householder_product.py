"""Fewer reflections than columns; batches that lie otherwise; more than a tile."""

OPINFO = 3
FORWARD = {
    "aten::linalg_householder_product": ("aten::geqrf", {"input": 0, "tau": 1}, {"self": "f32[2,70,40]"}),
}
CASES = {"aten::linalg_householder_product": [()]}
FAULTS = {
    "the first reflection first": (
        "column_major(input.shape, input), False)",
        "column_major(input.shape, input), True)",
    ),
}
