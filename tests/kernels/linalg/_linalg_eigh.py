"""Both triangles; odd and even numbers of rows, and of pairs, of more than a tile; batches that lie otherwise; equal
eigenvalues; no elements."""

OPINFO = 4
CASES = {
    "aten::_linalg_eigh": [
        ("f64[2,3,3]",),
        ("f32[2,4,4]{1,2,8}", "U"),
        ("f32[70,70]", "L"),
        ("f64[35,35]", "U", False),
        ("f32[5,5]=1",),
        ("f64[1,1]", "l"),
        ("f32[2,0,0]", "u"),
    ],
}
FAULTS = {
    "what was added is left": ("v * (x - added * v)", "v * x"),
    "one sweep": ("sweep < SWEEPS", "sweep < 1"),
    "no order": ("lanes, rank, lanes < n, n, height", "lanes, lanes.to(tl.int64), lanes < n, n, height"),
    "the other triangle": ("A.mT if upper else A", "A if upper else A.mT"),
}
