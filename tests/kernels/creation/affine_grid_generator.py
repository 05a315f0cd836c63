"""Images and volumes, aligned and not; one pixel; a matrix that is transposed."""

CASES = {
    "aten::affine_grid_generator": [
        ("f32[2,2,3]", [2, 3, 33, 40], True),
        ("f32[2,2,3]{6,1,2}", [2, 3, 33, 40], False),
        ("f64[1,3,4]", [1, 2, 4, 5, 6], True),
        ("bf16[2,3,4]", [2, 1, 3, 1, 9], False),
        ("f32[3,2,3]", [3, 1, 1, 1], True),
    ],
}
FAULTS = {
    "corners always aligned": ("return at if ALIGN else at *", "return at if ALIGN else at + 0 *"),
    "rows for columns": ("pixel_place(i % width, width", "pixel_place(i // width % height, height"),
    "nothing added": ("total += tl.load(row_ptr + DIMS * step", "total += 0 * tl.load(row_ptr + DIMS * step"),
}
REFUSED = {"aten::affine_grid_generator": [("i64[2,2,3]", [2, 3, 4, 5], False)]}
