"""From the left and the right, upper and lower, unit diagonals; broadcast and transposed batches; more than a block."""

OPINFO = 4
CASES = {
    "aten::linalg_solve_triangular": [
        ("f64[2,3,3]", "f64[2,3,4]", {"upper": False}),
        ("f32[40,40]u", "f32[40,37]", {"upper": True, "unitriangular": True}),
        ("f32[5,5]{1,5}u", "f32[3,2,5]", {"upper": True, "left": False}),
        ("f64[2,1,4,4]", "f64[3,7,4]", {"upper": False, "left": False, "unitriangular": True}),
        ("f32[5,5]u~", "f32[5,2]~", {"upper": True, "unitriangular": True}),
        ("f32[0,0]", "f32[0,3]", {"upper": True}),
    ],
}
FAULTS = {
    "the negative bit ignored": ("one_batch(resolved(self), resolved(B))", "one_batch(self, B)"),
    "the wrong triangle": ("t.mT, b.mT, out.mT, not upper", "t.mT, b.mT, out.mT, upper"),
    "the first batch": ("t_ptr += strided(matrix, batch[0], batch[1][0], False, PLAIN)", "t_ptr += 0"),
}
