"""What a GPU computes of contents, checked on the CPU by Triton's interpreter."""

import textwrap
from pathlib import Path

from warm import python

ROOT = Path(__file__).parents[2]


def interpreted(program):
    run = python("-c", textwrap.dedent(program), cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_moments_are_those_of_the_host():
    program = """
        import math, torch
        from capture.device import from_sums
        from capture.device_kernels import ROOM, moments_into
        from traces.fingerprint import moments
        torch.manual_seed(0)
        room = torch.zeros(ROOM, dtype=torch.float64)
        def found(x):
            sums = torch.zeros((3, 3), dtype=torch.float64)
            moments_into(sums, 1, x, room)
            assert not sums[::2].any() and not room[-1]  # the rows of others
            return from_sums(len(x), sums[1].tolist())
        for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.uint8, torch.bool):
            for n in (1, 1000, 40_000):
                x = (10 * torch.randn(n)).to(dtype)
                for a, b in zip(found(x), moments(x), strict=True):
                    assert math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12), (dtype, n, a, b)
        x = torch.randn(5000)
        x[7] = math.inf
        print(*found(x))
        x[8] = math.nan
        print(*found(x))
    """
    assert interpreted(program) == ["inf"] * 3 + ["nan"] * 3


def test_a_hash_depends_on_every_byte_and_on_their_order():
    program = """
        import torch
        from capture.device_kernels import hash_into
        def found(raw):
            sums = torch.zeros((3, 2), dtype=torch.int64)
            hash_into(sums, 1, raw)
            assert not sums[::2].any()  # the rows of others
            return tuple(sums[1].tolist())
        x = torch.randint(0, 255, (40_000,), dtype=torch.uint8)
        others = [x.flip(0).contiguous(), x.roll(8)]
        for i in (0, 1, 16_383, 39_999):
            others.append(x.clone())
            others[-1][i] += 1
        assert found(x) == found(x.clone())
        print(len({found(x), *map(found, others)}))
    """
    assert interpreted(program) == ["7"]


def test_bytes_are_copied_alone():
    program = """
        import torch
        from capture.device_kernels import copy_into
        source, target = torch.randint(1, 256, (50_000,), dtype=torch.uint8), torch.zeros(50_000, dtype=torch.uint8)
        for first, last in ((0, 40_000), (8, 24), (4, 40_004), (2, 6), (1, 39_000), (49_999, 50_000)):
            copy_into(target[first:last], source[first:last])
            assert torch.equal(target[first:last], source[first:last]), (first, last)
            assert not target[:first].any() and not target[last:].any(), (first, last)
            target.zero_()
        print("same")
    """
    assert interpreted(program) == ["same"]


def test_a_process_that_interprets_kernels_lets_the_host_look_at_contents():
    assert interpreted("from capture.device import compiles; print(compiles())") == ["False"]
