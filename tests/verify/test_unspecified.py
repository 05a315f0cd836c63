"""What Triton leaves open: kernels that rely on what the interpreter would do, and those that do not."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from traces.values import pack
from verify import platforms
from verify.contract.derive import Plan
from verify.platforms import COMPILE, EXECUTE
from verify.sandbox import wire
from verify.sandbox.children import Zygote

SIM = platforms.load("sim")
X = torch.linspace(-1, 1, 64)
HEAD = """
import math
import torch
import triton
import triton.language as tl

@triton.jit
def later(x, y):
    return y

@triton.jit
def difference(x, y):
    return x - y

@triton.jit
def inside(x, y):
    return tl.where((x > -2) & (y < 2), tl.maximum(x, y), 7.0)
"""


@pytest.fixture(scope="module")
def zygotes():
    started = {mode: Zygote(mode) for mode in (EXECUTE, COMPILE)}
    yield started
    for zygote in started.values():
        zygote.close()


@pytest.fixture
def run(zygotes):
    """Runs a kernel body of x, 64 numbers from -1 to 1, out, 64 sevens, and a counter. Returns header and out."""

    def ran(body, seed=0, grid="(1,)", mode=EXECUTE, options="", out="torch.full((64,), 7.0)"):
        lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
        source = f"""{HEAD}
@triton.jit
def kernel(x, out, counter, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
{lines}
def wrapper(self):
    out, counter = {out}, torch.zeros(1, dtype=torch.int32)
    kernel[{grid}](self, out, counter, 64, BLOCK=64{options})
    return out
"""
        job = {
            "plan": asdict(Plan("aten::exp", "aten::exp")),
            "sources": {"kernel": source},
            "takes_out": False,
            "targets": [asdict(t) for t in SIM.targets],
            "memory_bytes": SIM.memory_bytes,
        }
        with zygotes[mode].fork(job) as child:
            header, buffers = child.ask(pack({"self": X}), 60, {"seed": seed})
        if header["status"] != "ok":
            return header, None
        answer = wire.packed_of(header, buffers, "answer")
        ref = answer.tensors[answer.tree["return"]["tensor"]]
        return header, np.frombuffer(answer.data[ref.group], np.float32)[ref.offset // 4 :]

    return ran


JUNK = {
    "of a load without other": "y = tl.load(x + i, mask=i < 0)",
    "of NaN as an integer": "y = ((i * 0.0 + float('nan')).to(tl.int32)).to(tl.float32)",
    "of what an integer is too narrow for": "y = ((i + 1) * 1e9 + 3e9).to(tl.int32).to(tl.float32)",
    "of negative numbers as unsigned": "y = (-1.0 - i).to(tl.uint8).to(tl.float32)",
    "of infinity in bfloat16": "y = ((i + 1) * 3e38).to(tl.bfloat16).to(tl.int64).to(tl.float32)",
    "of a quotient by zero": "y = ((i + 5) // (i * 0)).to(tl.float32)",
    "of a remainder by zero": "y = ((i + 5) % (i * 0)).to(tl.float32)",
    "of a shift by 32": "y = ((i + 5) << (i * 0 + 32)).to(tl.float32)",
    "gathered from -1": "y = tl.gather(tl.load(x + i), -1 - i, 0)",
    "gathered past the end": "y = tl.gather(tl.load(x + i), 64 + i, 0)",
}


@pytest.mark.parametrize("body", JUNK.values(), ids=JUNK)
def test_junk_is_neither_zero_nor_the_same_everywhere(run, body):
    header, found = run(f"{body}\ntl.store(out + i, y)")
    assert header["status"] == "ok" and header["accesses"] == [], header
    assert len({str(value) for value in found}) > 1 and not (found == 0).any()
    _, other = run(f"{body}\ntl.store(out + i, y)", seed=1)
    assert not np.array_equal(found, other, equal_nan=True)


@pytest.mark.parametrize("body", JUNK.values(), ids=JUNK)
def test_lanes_of_junk_may_be_masked_off(run, body):
    header, found = run(f"{body}\ntl.store(out + i, y, mask=i < 0)")
    assert header["status"] == "ok" and header["accesses"] == [] and (found == 7).all(), header


@pytest.mark.parametrize("seed", range(4))
def test_one_element_that_is_masked_off_is_the_number_given(run, seed):
    """0 too, which is no less given than others."""
    body = "y = tl.load(x + 5, mask=tl.program_id(0) > 0, other=0) + tl.load(x, mask=tl.program_id(0) > 0, other=2.5)"
    header, found = run(f"{body}\ntl.store(out + i, i * 0.0 + y)", seed=seed)
    assert header["status"] == "ok" and (found == 2.5).all(), header


FITS = {
    "a number that an integer can hold": ("(i * -1e6).to(tl.int32).to(tl.float32)", np.arange(64) * -1e6),
    "the smallest integer": ("(i * 0.0 - 2147483648.0).to(tl.int32).to(tl.float32)", [-(2.0**31)] * 64),
    "a fraction above the largest byte": ("(i * 0 + 255.9).to(tl.uint8).to(tl.float32)", [255.0] * 64),
    "a load whose mask holds": ("tl.load(x + i, mask=i < 64)", X),
    "other": ("tl.load(x + i, mask=i < 0, other=3.0)", [3.0] * 64),
    "a shift by 31": ("(((i * 0 + 1) << 31) >> 31).to(tl.float32)", [-1.0] * 64),
    "a gather": ("tl.gather(tl.load(x + i), 63 - i, 0)", X.flip(0)),
}


@pytest.mark.parametrize("value, expected", FITS.values(), ids=FITS)
def test_values_that_there_are(run, value, expected):
    assert np.array_equal(run(f"tl.store(out + i, {value})")[1], np.float32(expected))


RACES = {
    "different values at once": "tl.store(out + i * 0, tl.load(x + i))",
    "two lanes in one place": "tl.store(out + i // 2, tl.load(x + i))",
    "a load of another lane's": "tl.store(out + i, 1.0)\ntl.store(x + i, tl.load(out + 63 - i), mask=i < 0)",
    "a scalar over a block": "tl.store(out + i, 1.0)\ntl.store(out + 5, 2.0)",
    "a block over a scalar": "tl.store(out + 5, 2.0)\ntl.store(out + i, 1.0)",
    "reversed in place": "tl.store(out + i, tl.load(out + 63 - i))",
    "a load beside atomics": "tl.atomic_add(out + i, 1.0)\ntl.store(x + i, tl.load(out + 63 - i), mask=i < 0)",
}
ORDERED = {
    "one value": "tl.store(out + i * 0, 3.0)",
    "its own": "tl.store(out + i, 1.0)\ntl.store(out + i, tl.load(out + i) + 1)",
    "its own in another order": "j = 63 - i\ntl.store(out + j, 1.0)\ntl.store(out + j, tl.load(out + j) + 1)",
    "a barrier": "tl.store(out + i, 1.0)\ntl.debug_barrier()\ny = tl.load(out + 63 - i)\n"
    "tl.debug_barrier()\ntl.store(out + i, y)",
    "a sum": "y = tl.load(out + 63 - i)\ntl.store(out + i, y + tl.sum(y))",
    "the same once more": "tl.store(out + i, 1.0)\ntl.store(out + 5, 1.0)",
    "a mask": "tl.store(out + i * 0, tl.load(x + i), mask=i == 9)",
    "halves": "h = i % 32\n"
    "tl.store(out + i, 1.0, mask=i < 32)\ny = tl.load(out + 32 + h)\ntl.store(x + i, y, mask=i < 0)",
}


@pytest.mark.parametrize("body", RACES.values(), ids=RACES)
def test_races_of_lanes(run, body):
    (found, *_) = run(body)[0]["accesses"]
    assert found["kind"] == "race" and "in one program" in found["text"] and found["argument"] == "out"


@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED)
def test_no_races_of_lanes(run, body):
    header, _ = run(body)
    assert header["status"] == "ok" and header["accesses"] == [], header


UNDEFINED = {
    "all": "y = tl.load(out + i)",
    "the second half": "tl.store(out + i, 1.0, mask=i < 32)\ntl.debug_barrier()\ny = tl.load(out + 63 - i)",
    "halves of words": "tl.store(out.to(tl.pointer_type(tl.float16)) + 2 * i, 1.0)\ny = tl.load(out + i)",
    "an atomic": "y = tl.atomic_add(out + i, 1.0)",
    "one element": "y = i + tl.load(out + 5)",
    "not selected": "y = tl.where(i < 0, tl.load(out + i), 1.0)",
}
DEFINED = {
    "masked": "y = tl.load(out + i, mask=i < 0, other=1.0)",
    "stored before": "tl.store(out + i, 1.0)\ny = tl.load(out + i)",
    "stored by an atomic": "tl.atomic_xchg(out + i, 1.0, mask=i < 0)\ny = i",
    "another element": "tl.store(out + i, 1.0, mask=i < 32)\ny = tl.load(out + i, mask=i < 32, other=0.0)",
}


@pytest.mark.parametrize("body", UNDEFINED.values(), ids=UNDEFINED)
def test_memory_that_nothing_has_written(run, body):
    body = f"{body}\ntl.store(x + i, y.to(tl.float32), mask=i < 0)"
    (found, *_) = run(body, out="torch.empty(64)")[0]["accesses"]
    assert found["kind"] == "undefined" and found["argument"] == "out" and "nothing has written" in found["text"]
    for filled in ("torch.zeros(64)", "torch.empty(64).fill_(1.0)", "torch.empty(64).copy_(self)"):
        header, _ = run(body, out=filled)
        assert header["status"] == "ok" and header["accesses"] == [], header


GROWN = {
    "the old part": ("torch.empty(4).resize_(64)", "i < 4", True),
    "the old part, written": ("torch.zeros(4).resize_(64)", "i < 4", False),
    "the new part": ("torch.zeros(4).resize_(64)", "i == 4", True),
    "not enlarged": ("torch.empty(64).resize_(32)", "i < 4", True),
    "what has the old address": ("[torch.empty(64).resize_(1 << 20), torch.zeros(64)][1]", "i < 64", False),
    "read by an operator": ("(lambda t: (t.clone(), t)[1])(torch.empty(64))", "i < 64", True),
    "written by out=": ("torch.exp(self, out=torch.empty(64))", "i < 64", False),
}


@pytest.mark.parametrize("out, mask, undefined", GROWN.values(), ids=GROWN)
def test_what_an_operator_of_the_wrapper_leaves_undefined(run, out, mask, undefined):
    header, _ = run(f"y = tl.load(out + i, mask={mask}, other=0.0)\ntl.store(x + i, y, mask=i < 0)", out=out)
    assert header["status"] == "ok" and [a["kind"] for a in header["accesses"]] == ["undefined"] * undefined, header


@pytest.mark.parametrize("body", DEFINED.values(), ids=DEFINED)
def test_memory_that_was_written(run, body):
    header, _ = run(f"{body}\ntl.store(x + i, y.to(tl.float32), mask=i < 0)", out="torch.empty(64)")
    assert header["status"] == "ok" and header["accesses"] == [], header


LOOP = """
for k in tl.range(0, 8{}):
    y = tl.load(out + i)
    {}
    tl.store(out + {}, y + 1.0)
"""
INNER = "for m in tl.range(0, 2, num_stages=2):\n        y += 1.0"


@pytest.mark.parametrize(
    "options, inside, stored, distance",
    [
        (", num_stages=2", "y += 1.0", "i", 1),
        (", num_stages=3", "y += 1.0", "i", 2),
        (", 1, 3", "y += 1.0", "i", 2),
        (", num_stages=1", "y += 1.0", "i", 0),
        ("", "y += 1.0", "i", 0),
        (", num_stages=3", "y += 1.0", "i + 64", 0),
        (", num_stages=3", INNER, "i", 0),
    ],
    ids=["2", "3", "by position", "1", "none", "elsewhere", "outer"],
)
def test_a_pipelined_loop_does_not_load_what_it_just_stored(run, options, inside, stored, distance):
    header, _ = run(LOOP.format(options, inside, stored), out="torch.full((128,), 7.0)[:64]")
    if not distance:
        assert header["status"] == "ok" and header["accesses"] == [], header
        return
    (found,) = header["accesses"]
    assert found["kind"] == "race" and f"num_stages={distance + 1} loads what an earlier" in found["text"], found


@pytest.mark.parametrize("back, wrong", [(2, True), (3, False)])
def test_a_pipelined_loop_overtakes_only_the_iterations_in_flight(run, back, wrong):
    body = f"for k in tl.range({back}, 20, num_stages=3):\n    y = tl.load(out + k - {back})\n    tl.store(out + k, y)"
    header, _ = run(body)
    assert header["status"] == "ok" and bool(header["accesses"]) is wrong, header


def test_what_a_pipelined_loop_stored_may_be_loaded_behind_it(run):
    body = (
        "for k in tl.range(4, num_stages=3):\n    tl.store(out + i, k * 1.0)\ntl.store(out + i, tl.load(out + i) + 1)"
    )
    header, found = run(body)
    assert header["status"] == "ok" and header["accesses"] == [] and (found == 4).all(), header


def test_a_loop_with_a_step_and_no_start_begins_at_0(run):
    header, found = run("for k in tl.range(8, step=3):\n    tl.store(out + k, 1.0)")
    assert header["status"] == "ok" and np.flatnonzero(found == 1).tolist() == [0, 3, 6], header


def test_atomics_are_performed_in_any_order_of_lanes(run):
    body = "tl.store(out + i, tl.atomic_add(counter + i * 0, 1).to(tl.float32))"
    places = [run(body, seed)[1].tolist() for seed in (0, 1, 2, 2)]
    assert places[0] == places[1][::-1] == sorted(places[2]) == list(range(64))
    assert places[2] == places[3] not in places[:2]


def test_reductions_combine_in_no_order_of_the_elements(run):
    body = "tl.store(out, tl.reduce(i.to(tl.float32), 0, {}))"
    assert run(body.format("later"))[1][0] != 63
    assert run(body.format("later"))[1][0] == run(body.format("later"), seed=2)[1][0]  # as a GPU, which has one layout
    assert run("tl.store(out + i, tl.associative_scan(i.to(tl.float32), 0, later))")[1].tolist() == list(range(64))
    scanned = run("tl.store(out + i, tl.associative_scan(i * 0.0 + 1, 0, difference))")[1]
    assert scanned.tolist() != [1.0 - k for k in range(64)]
    assert run("tl.store(out, tl.argmax(i * 0, 0, tie_break_left=False).to(tl.float32))")[1][0] != 0
    assert run("tl.store(out, tl.argmax(i * 0, 0).to(tl.float32))")[1][0] == 0


def test_comparisons_of_scalars_are_masks(run):
    header, found = run("tl.store(out + i, 1.0, mask=(i < 9) & (tl.load(x) < 5.0) & (n > p))")
    assert header["status"] == "ok" and found.tolist() == [1.0] * 9 + [7.0] * 55, header
    for fold in ("tl.reduce(y, 0, inside)", "tl.associative_scan(y, 0, inside)"):
        header, found = run(f"y = tl.load(x + i)\ntl.store(out + i, {fold})")
        assert header["status"] == "ok" and found[-1] == 1, header


HINTS = {
    "tl.assume(n > 64)": "tl.assume is told what does not hold",
    "j = tl.multiple_of(i * 3, 64)": "tl.multiple_of is told 64, and value 3 at [1] is no multiple",
    "j = tl.multiple_of(n + 1, 16)": "tl.multiple_of is told 16, and value 65 at [0] is no multiple",
    "j = tl.max_contiguous(i // 2, 64)": "tl.max_contiguous is told 64, and value 0 at [1] does not follow",
    "j = tl.max_contiguous(i[None, :] * i[:, None], (1, 4))": "is told 4 in dimension 1, and value 0 at [0, 1]",
    "j = tl.max_constancy(i, 2)": "tl.max_constancy is told 2, and value 1 at [1] does not equal",
    "j = tl.multiple_of(x + 1, 16)": "tl.multiple_of is told 16, and value",
}
TRUE = (
    "tl.assume(n >= 64)",
    "j = tl.max_contiguous(tl.multiple_of(64 * p + i, 64), 64)",
    "j = tl.multiple_of(n, 64)",
    "j = tl.multiple_of(input=n, values=64)",
    "j = tl.multiple_of(i % 16 + i // 16 * 32, 16)",
    "j = tl.max_constancy(i // 4, 4)",
    "j = tl.max_contiguous(tl.multiple_of(x + i, 4), 64)",
    "j = tl.multiple_of(64 * i[:, None] + i[None, :], (1, 64))",
)


@pytest.mark.parametrize("body", HINTS)
def test_false_hints(run, body):
    header, _ = run(body)
    (found,) = header["accesses"]
    assert found["kind"] == "hint" and HINTS[body] in found["text"] and "(kernel, line" in found["text"]


@pytest.mark.parametrize("body", TRUE)
def test_true_hints(run, body):
    header, _ = run(body)
    assert header["status"] == "ok" and header["accesses"] == [], header


FIG_LEAVES = {
    "around it": "tl.atomic_add(counter, 1)\ntl.store(out, tl.load(out) + 1)\ntl.atomic_add(counter, 1)",
    "a condition that always holds": "if tl.atomic_add(counter, 1) >= 0:\n"
    "    tl.store(out, tl.load(out) + 1)\n    tl.atomic_add(counter, 1)",
    "a store beside atomics": "if p == 2:\n    tl.store(out, 0.0)\ntl.atomic_add(out, 1.0)\n"
    "if p == 3:\n    tl.store(out, 1.0)",
    "a load beside atomics": "if p == 3:\n    tl.store(out + 1, tl.load(out))\nelse:\n    tl.atomic_add(out, 1.0)",
}


@pytest.mark.parametrize("body", FIG_LEAVES.values(), ids=FIG_LEAVES)
def test_atomics_that_order_nothing(run, body):
    found = [a for seed in (0, 1, 2) for a in run(body, seed, "(20,)")[0]["accesses"]]
    assert found and all(a["kind"] == "race" for a in found)


HANDED_OVER = {
    "a lock": "while tl.atomic_cas(counter, 0, 1) == 1:\n    pass\n"
    "tl.store(out, tl.load(out) + 1)\ntl.atomic_xchg(counter, 0)",
    "a counter": "tl.store(out + p, 1.0)\nif tl.atomic_add(counter, 1) == 19:\n"
    "    tl.store(out, tl.sum(tl.load(out + i, mask=i < 20, other=0.0)) + 7)",
    "a total": "tl.atomic_add(out, 1.0)\nif tl.atomic_add(counter, 1) == 19:\n    tl.store(out + 1, tl.load(out))",
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", HANDED_OVER)
def test_atomics_that_hand_over(run, name, seed):
    header, found = run(HANDED_OVER[name], seed, "(20,)")
    assert header["status"] == "ok" and header["accesses"] == [] and found[int(name == "a total")] == 27, header


@pytest.mark.parametrize("grid", ["(1, 65536)", "(1, 1, 65536)", "(2 ** 31,)", "(1, 1, 1, 1)", "(-1,)"])
def test_grids_that_no_launch_can_have(run, grid):
    header, _ = run("tl.store(out, 1.0)", grid=grid)
    assert header["status"] == "error" and "ValueError: kernel: a grid" in header["text"], header


@pytest.mark.parametrize("warps", [3, 64])
def test_warps_that_no_program_can_have(run, warps):
    header, _ = run("tl.store(out + i, 1.0)", mode=COMPILE, options=f", num_warps={warps}")
    assert header["status"] == "error" and "warps" in header["refused"], header
    assert run("tl.store(out + i, 1.0)", mode=COMPILE, options=", num_warps=32")[0]["status"] == "ok"
