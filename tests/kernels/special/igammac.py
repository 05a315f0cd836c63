"""Both sides of where formulas meet; special values; what falls under the least of float32."""

OPINFO = 3
CASES = {
    "aten::igammac": [
        ("f32[33,70]{1,33}u", "f32[33,70]u"),
        (
            "f32(0, -0., -1, inf, nan, nan, nan, inf, 2, 2, 2, 0, 0)",
            "f32(1, 0, 1, 1, 0, inf, 1, nan, inf, -1, 0, nan, -1)",
        ),
        (
            "f64(0.5, 0.999, 1, 1.1, 1.2, 99.9, 99.9, 100, 100, 100, 100)",
            "f64(1.1, 1.11, 1, 2, 1.1, 99, 101, 71, 69, 131, 129)",
        ),
        (
            "f64(1e4, 1e4, 1e4, 1e6, 1e6, 1e10, 1e10, 1e300)",
            "f64(1e4, 9900, 10200, 1000500, 998000, 1e10, 10000100000, 1e300)",
        ),
        ("f64(2, 3, 40, 90, 0.25)", "f64(1e-5, 50, 3, 200, 30)"),
        ("bf16[40,3]u", "bf16[40,1]u"),
        ("f16[7]u", "f32[7]u"),
    ],
}
FAULTS = {"no uniform expansion": ("uniform_series(eta, 1 / b)", "uniform_series(eta, 0 / b)")}
