"""How many mutants of the library's operators the cases notice: OpInfo's samples alone, and with the extended cases.

    python benchmarks/mutants.py [--seed 1] [--trace PATH]

A mutant is a wrong answer made from ATen's right one: its first argument, zeros, ones, an argument left out, arguments
rounded to bfloat16 (verify/mutants.py). Those that are the operator itself on every case are not counted.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from enable.coverage import cases_by_overload  # noqa: E402 - needs the path above
from generate.library import KERNELS, Library  # noqa: E402
from traces import Trace  # noqa: E402
from verify.extended import extended  # noqa: E402
from verify.mutants import try_mutants  # noqa: E402
from verify.samples import opinfo_cases  # noqa: E402


def main() -> None:
    """Print a row for each overload, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", type=Path, help="take recorded calls where OpInfo has no samples")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    recorded = cases_by_overload(Trace.open(options.trace)) if options.trace else {}
    totals = [0, 0, 0]
    print(f"{'overload':56} {'cases':>9} {'mutants':>7} {'noticed':>9}  missed by all")
    for overload in sorted({name for kernel in Library(KERNELS) for name in kernel.overloads}):
        given = [c for c in opinfo_cases([overload], ("float32",)) if c.overload == overload]
        given = given or recorded.get(overload, [])
        every = given + [v.case for v in extended(given, options.seed, "BLOCK = 128")]
        weak, strong = try_mutants(overload, given), try_mutants(overload, every)
        if strong.itself != strong.cases:
            print(f"{overload}: ATen's own answer fails {strong.cases - strong.itself} of {strong.cases} cases")
        alone = sum(weak.mutants.get(name, 0) > 0 for name in strong.mutants)
        noticed = len(strong.mutants) - len(strong.missed)
        totals = [a + b for a, b in zip(totals, (len(strong.mutants), alone, noticed), strict=True)]
        counts = f"{len(given):4}/{len(every):4} {len(strong.mutants):7} {alone:4}/{noticed:4}"
        print(f"{overload:56} {counts}  {', '.join(strong.missed)}")
    print(f"{totals[0]} mutants: the given cases alone notice {totals[1]}, with extended ones {totals[2]}")


if __name__ == "__main__":
    main()
