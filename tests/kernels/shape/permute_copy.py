"""Orders."""

OPINFO = 4
CASES = {"aten::permute_copy": [("f32[3,33,70]", [2, 0, -2])]}
