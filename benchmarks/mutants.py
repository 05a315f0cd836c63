"""How many mutants of the library's operators the cases notice: OpInfo's samples alone, and with the extended cases.

    python -m benchmarks.mutants [--seed 1] [--trace PATH]

A mutant is a wrong answer made from ATen's right one: its first argument, zeros, ones, an argument left out or ignored,
arguments rounded to bfloat16, nothing past a size, a class of values lost (verify/comparison/mutants.py). Those that
are the operator itself on every case are not counted. Of honest kernels whose lanes wait for each other there is one
more, without its barrier; one stored scalar beside an atomic needs none, and passes.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from enable.cover.coverage import cases_by_overload
from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier
from generate.kernel_library import KERNELS, Library
from traces import Trace
from verify.cases.extended import extended
from verify.cases.samples import opinfo_cases
from verify.comparison.mutants import try_mutants

HONEST = Path(__file__).parents[1] / "tests" / "verify" / "corpus" / "honest"
BARRIER = "    tl.debug_barrier()\n"


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
    without_barriers(options.seed)
    print(f"{totals[0]} mutants: the given cases alone notice {totals[1]}, with extended ones {totals[2]}")


def without_barriers(seed: int) -> None:
    """Print how honest kernels are judged without their barriers."""
    with TemporaryDirectory() as home, Verifier(Path(home) / ".enable", None, "sim", "triton-cuda", "full") as verifier:
        for path in sorted(HONEST.glob("*.py")):
            text = path.read_text()
            if BARRIER in text:
                mutant = Path(home) / path.name
                mutant.write_text(text.replace(BARRIER, ""))
                found = verifier.verify(str(mutant), None, VerifyRequest(seed=seed))
                print(f"{path.stem} without its barrier: {found.outcome}, {found.detail[:90]}")


if __name__ == "__main__":
    main()
