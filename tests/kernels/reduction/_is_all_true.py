"""All true, all false, one that is not as the others; none; in another order."""

CASES = {
    "aten::_is_all_true": [
        ("bool[300,70]{1,300}",),
        ("bool[5000]=1",),
        ("bool[5000]=0",),
        ("bool[0]",),
        ("bool[]=1",),
        ("bool(1, 1, 0)",),
    ],
}
FAULTS = {"any for all": ('truth("min", self', 'truth("max", self')}
