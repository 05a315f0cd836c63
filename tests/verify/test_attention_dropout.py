"""The judge on fused attention: forward and backward have to drop what is laid down, for pairs they cannot know."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from corpus import replaced
from shared import packaged, sampled

from traces.overloads import call, resolve
from verify.cases import references
from verify.cases.case import case_of_values
from verify.cases.philox import kept, philox
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

KINDS = ("efficient", "cudnn", "flash")


@pytest.fixture
def verdict_of(judge):
    def of(overload, arguments, *changes):
        kernel = packaged().match(overload).kernel
        if changes:
            kernel = KernelFile.parse(replaced(kernel.source, *changes), Path("kernel.py"))
        case = case_of_values(overload, **arguments)
        return judge.judge([Job(Plan(overload, overload), kernel, (case,), repeats=1)])[overload, case.id]

    return of


def values(*shape, dtype, number=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(number)).to(dtype)


def inputs(dtype, rows=21, columns=39, bias=False, lying="bhtd", batch=2, dim=16):
    q, k, v = (lie(values(batch, 3, n, dim, dtype=dtype, number=n), lying) for n in (rows, columns, columns))
    added = values(batch, 3, rows, columns, dtype=dtype) if bias else None
    return {"query": q, "key": k, "value": v, "attn_bias": added}


def lie(x, how):
    """The same values [B, H, T, D] in other places: as a projection leaves them, or a part of one of q, k and v."""
    if how == "bthd":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "split":
        return torch.stack((x, x, x), 3).permute(0, 2, 3, 1, 4).contiguous().select(2, 1).transpose(1, 2)
    return x


def forward(kind, dtype, dropout_p, is_causal=False, **sizes):
    arguments = {**inputs(dtype, **sizes), "dropout_p": dropout_p, "is_causal": is_causal, "scale": None}
    if kind == "flash":
        del arguments["attn_bias"]
    else:
        arguments["compute_log_sumexp"] = True
    if kind != "efficient":
        arguments["return_debug_mask"] = False
    return f"aten::_scaled_dot_product_{kind}_attention", arguments


def backward(kind, dtype, dropout_p, is_causal=False, **sizes):
    """A call as ATen's own forward could have left it: its state of the generator and output are not this library's."""
    overload, given = forward(kind, dtype, 0.0, is_causal, **sizes)
    made = references.answer(overload, given, (0, 0))
    names = ("query", "key", "value", "attn_bias", "is_causal", "scale")
    arguments = {name: given[name] for name in names if name in given}
    grad = lie(values(*made[0].shape, dtype=dtype, number=7), sizes.get("lying"))
    arguments |= {"out": made[0], "logsumexp": made[1], "dropout_p": dropout_p}
    if kind == "efficient":
        arguments |= {"grad_out_": grad, "grad_input_mask": [True, True, True, sizes.get("bias", False)]}
    else:
        rows, columns = given["query"].shape[2], given["key"].shape[2]
        arguments |= {"grad_out": grad, "cum_seq_q": None, "cum_seq_k": None, "max_q": rows, "max_k": columns}
    state = made[2:4] if kind == "efficient" else made[6:8]
    return f"{overload}_backward", arguments | dict(zip(("philox_seed", "philox_offset"), state, strict=True))


CALLS = {"forward": forward, "backward": backward}


PASSING = [*((kind, p) for kind in KINDS for p in (0.0, 0.2)), ("efficient", 1.0)]


@pytest.mark.parametrize("direction", CALLS)  # below no dropout, and flash attention with one
@pytest.mark.parametrize(("kind", "dropout_p"), sampled(PASSING, [p for p in PASSING if p[1] and p[0] != "flash"]))
def test_the_librarys_pass(kind, direction, dropout_p, verdict_of):
    verdict = verdict_of(*CALLS[direction](kind, torch.float16, dropout_p))
    assert verdict.outcome is Outcome.PASS, verdict


@pytest.mark.parametrize("direction", CALLS)
def test_causal_with_bias_in_float32(direction, verdict_of):
    given = CALLS[direction]("efficient", torch.float32, 0.5, columns=21, bias=True, batch=1)
    assert verdict_of(*given).outcome is Outcome.PASS
    given = CALLS[direction]("efficient", torch.float32, 0.5, is_causal=True, columns=21, batch=1)
    assert verdict_of(*given).outcome is Outcome.PASS


LYING = list(itertools.product(("cudnn", "flash"), ("bthd", "split"), CALLS))


@pytest.mark.parametrize(("kind", "lying", "direction"), sampled(LYING, [LYING[i] for i in (3, 4)]))
def test_results_lie_as_the_queries(kind, lying, direction, verdict_of):
    overload, given = CALLS[direction](kind, torch.bfloat16, 0.0, lying=lying)
    assert verdict_of(overload, given).outcome is Outcome.PASS
    on_meta = {n: v.to("meta") if isinstance(v, torch.Tensor) else v for n, v in given.items()}
    results = zip(references.answer(overload, given, (0, 0)), call(resolve(overload), on_meta), strict=True)
    results = [pair for pair in results if isinstance(pair[0], torch.Tensor)]
    assert all((a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride()) for a, b in results)


SIZES = {
    "a head dimension no multiple of 8": {"dim": 13},
    "more queries than keys": {"rows": 70, "columns": 33},
    "more keys than queries": {"rows": 33, "columns": 70},
    "one query": {"rows": 1, "columns": 70},
    "no batch": {"batch": 0},
    "no query": {"rows": 0},
    "no key": {"columns": 0},
}


SIZED = list(itertools.product(SIZES, CALLS))


@pytest.mark.parametrize(("name", "direction"), sampled(SIZED, [row for i, row in enumerate(SIZED) if i % 8 in (0, 7)]))
def test_sizes_of_causal_flash_attention(name, direction, verdict_of):
    verdict = verdict_of(*CALLS[direction]("flash", torch.float16, 0.2, is_causal=True, **SIZES[name]))
    assert verdict.outcome is Outcome.PASS, verdict


def test_a_causal_mask_of_flash_attention_ends_in_the_corner():
    """The last query sees all keys; of two that are more than the keys, the first see none: 0 and infinity."""
    overload, given = forward("flash", torch.float64, 0.0, is_causal=True, rows=2, columns=5)
    out, lse = references.answer(overload, given, (0, 0))[:2]
    scores = given["query"] @ given["key"].mT / 4
    torch.testing.assert_close(lse[..., 1], scores[..., 1, :].logsumexp(-1))
    torch.testing.assert_close(lse[..., 0], scores[..., 0, :4].logsumexp(-1))
    overload, given = forward("flash", torch.float64, 0.0, is_causal=True, rows=5, columns=2)
    out, lse = references.answer(overload, given, (0, 0))[:2]
    assert (out[..., :3, :] == 0).all() and (lse[..., :3] == torch.inf).all()
    torch.testing.assert_close(out[..., 3, :], given["value"][..., 0, :])


@pytest.mark.parametrize("direction", CALLS)
def test_a_causal_mask_from_the_other_corner_is_refused(direction, verdict_of):
    shift = {
        "forward": ("shift = Tk - Tq", "shift = 0"),
        "backward": ("shift = Tk - Tq", "shift = 0"),
    }
    given = CALLS[direction]("flash", torch.float16, 0.0, is_causal=True, rows=33, columns=70)
    verdict = verdict_of(*given, shift[direction])
    assert (verdict.outcome, verdict.layer) == (Outcome.WRONG, "compare"), verdict


NOTHING = ({"batch": 0}, {"rows": 0}, {"columns": 0})


@pytest.mark.parametrize(
    ("kind", "sizes"), sampled(itertools.product(KINDS, NOTHING), list(zip(KINDS, NOTHING, strict=True))), ids=str
)
def test_the_state_of_the_generator_is_told_of_nothing_too(kind, sizes, verdict_of):
    verdict = verdict_of(*forward(kind, torch.float16, 0.2, **sizes))
    assert verdict.outcome is Outcome.PASS, verdict


FLAWS = {
    "no dropout": ("DROPOUT=dropout_p > 0", "DROPOUT=False"),
    "another element's draw": ("(head * Tq + rows)[:, None]", "(head * Tq + rows + 1)[:, None]"),
    "the same draws for all heads": ("i = (head * Tq + rows)", "i = (0 * head * Tq + rows)"),
    "half of the seed": ("tl.philox(\n        seed,", "tl.philox(\n        seed & 0xFFFFFFFF,"),
    "half of the offset": ("(call >> 32).to(tl.uint32), i.to", "(call >> 63).to(tl.uint32), i.to"),
    "p for 1 - p": ("math.ceil((1 - dropout_p)", "math.ceil(dropout_p"),
}


FLAWED = list(itertools.product(FLAWS, ("efficient", "flash"), CALLS))
# Of each flaw one: two in the backward kernel, which draws anew, and the others in the forward one.
OF_EACH = [(n, *(("flash", "backward") if i in (0, 4) else ("efficient", "forward"))) for i, n in enumerate(FLAWS)]


@pytest.mark.parametrize(("name", "kind", "direction"), sampled(FLAWED, OF_EACH))
def test_a_flawed_kernel_is_refused(name, kind, direction, verdict_of):
    verdict = verdict_of(*CALLS[direction](kind, torch.float32, 0.2, batch=1), FLAWS[name])
    assert (verdict.outcome, verdict.layer) == (Outcome.WRONG, "compare"), verdict


@pytest.mark.parametrize("kind", sampled(["cudnn", "flash"], ["flash"]))
def test_a_forward_that_hands_on_another_state_is_refused(kind, verdict_of):
    change = ("tl.store(offset_ptr, offset)", "tl.store(offset_ptr, offset + 1)")
    assert verdict_of(*forward(kind, torch.float32, 0.2, batch=1), change).outcome is Outcome.WRONG


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_references_are_what_pytorch_computes(kind, is_causal):
    overload, given = forward(kind, torch.float64, 0.0, is_causal, columns=21)
    q, k, v = (given[name].requires_grad_() for name in ("query", "key", "value"))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    torch.testing.assert_close(references.answer(overload, given, (0, 0))[0], want)
    overload, given = backward(kind, torch.float64, 0.0, is_causal, columns=21)
    grad = given.get("grad_out_", given.get("grad_out"))
    found = references.answer(overload, given, (0, 0))[:3]
    torch.testing.assert_close(found, torch.autograd.grad(want, (q, k, v), grad))


def test_philox_gives_the_known_answers():
    """Those of its authors' library, for counters and keys of zeros and of the digits of pi."""
    zeros = philox(0, 0, np.zeros(1, np.uint64))
    assert [hex(w) for w in zeros[0].tolist()] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    key, low, high = 0x299F31D0_A4093822, 0x85A308D3_243F6A88, 0x03707344_13198A2E
    digits = philox(key, low, np.array([high], np.uint64))
    assert [hex(w) for w in digits[0].tolist()] == ["0xd16cfe09", "0x94fdcceb", "0x5001e420", "0x24126ea1"]


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_the_share_that_dropout_keeps(p):
    share = kept((-5, 3), (4, 100, 333), p).mean()
    assert abs(share - (1 - p)) < 0.01
    assert 0 < p < 1 or share == 1 - p
