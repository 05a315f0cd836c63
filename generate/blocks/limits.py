"""Numbers that several blocks share: hardware limits, integer ranges, and the size of a small tensor."""

__all__ = ["INT32_MAX", "INT64_MAX", "MAX_GRID_YZ", "PROCESSORS", "SMALL_TENSOR"]

# Streaming multiprocessors of an H100 or H200. Grids aim at a small multiple: four programs for each keep
# memory busy. On another chip the grids are correct, but not as well balanced.
PROCESSORS = 132

# Number of elements below which a launch takes longer than its work. Such launches encode their integers
# (`plain` in offsets.py), because fewer kernel variants to compile matter more than vectorized loads.
SMALL_TENSOR = 65536

MAX_GRID_YZ = 65535  # largest second and third size of a CUDA grid; the first may have 2^31 - 1

INT32_MAX = 2147483647
INT64_MAX = 9223372036854775807
