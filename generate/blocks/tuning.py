"""Launch settings that `enable tune --no-llm` chose, from a table in the kernel file by target and size.

A kernel file declares the choices, SPACE = (("BLOCK", (256, 1024)), ("WARPS", (4, 8))), and the chosen values
in rows: TUNED = (("", 0, 1024, 4), ("sm_90", 65536, 256, 8)). A row has a target ("" is any), the least
element count for which it holds, and a value for each name in SPACE. The first row holds for any target and
size.
"""

import math

TUNING_TARGET = ""  # such as sm_90; the loader on a device sets it (verify/child/loading.py)

__all__ = ["tuned"]


def tuned(table, *shapes):
    """Return the values in the last table row that holds for the largest shape's element count."""
    n = max([math.prod(shape) for shape in shapes])
    values = table[0][2:]
    for row in table:
        if row[1] <= n and row[0] in ("", TUNING_TARGET):
            values = row[2:]
    return values


TRITON = ""  # such as 3.9; the loader sets it if kernels are compiled, and it stays empty if they are interpreted
