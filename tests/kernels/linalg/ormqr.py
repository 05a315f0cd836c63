"""From the left and the right, transposed; more than a tile."""

OPINFO = 3
FORWARD = {"aten::ormqr": ("aten::geqrf", {"self": 0, "input2": 1}, {"self": "f32[70,40]"})}
CASES = {
    "aten::ormqr": [
        ({"input3": "f32[70,5]"},),
        ({"input3": "f32[70,35]{1,70}", "transpose": True},),
        ({"input3": "f32[5,70]", "left": False},),
        ({"input3": "f32[5,70]", "left": False, "transpose": True},),
    ],
}
FAULTS = {
    "one order from the left": ("input3, out, transpose)", "input3, out, False)"),
    "one order from the right": ("out.mT, not transpose)", "out.mT, True)"),
}
