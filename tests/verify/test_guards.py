"""The runtime guards: kernels that trip each and honest ones that do not, in the children that the judge uses."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from shared import sampled

from traces.values import pack
from verify import platforms
from verify.child.answers import complaints
from verify.contract.derive import Plan
from verify.platforms import COMPILE, EXECUTE
from verify.sandbox import confine, wire
from verify.sandbox.children import Zygote

SIM = platforms.load("sim")
THREADS = "execute, without a sandbox"  # which lets nobody start threads
HEAD = "import math\nimport torch\nimport triton\nimport triton.language as tl\n"
COPY = """
@triton.jit
def kernel_copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def copied(x):
    out = torch.empty_like(x)
    kernel_copy[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
X = torch.linspace(-1, 1, 50)


@pytest.fixture(scope="module")
def zygotes():
    started = {mode: Zygote(mode) for mode in (EXECUTE, COMPILE)}
    started[THREADS] = Zygote(EXECUTE, confine.NONE)
    yield started
    for zygote in started.values():
        zygote.close()


@pytest.fixture
def ask(zygotes):
    """Replies to `requests`, put to one child: (header, packed answer or None)."""

    def asked(source, *requests, mode=EXECUTE, overload="aten::exp", **arguments):
        job = {
            "plan": asdict(Plan(overload, overload)),
            "sources": {"kernel": HEAD + source},
            "takes_out": False,
            "targets": [asdict(t) for t in SIM.targets],
            "memory_bytes": SIM.memory_bytes,
            "alignment": arguments.pop("alignment", 1),
        }
        packed, replies = pack(arguments or {"self": X}), []
        with zygotes[mode].fork(job) as child:
            for request in requests or ({},):
                header, buffers = child.ask(packed, 60, request)
                answer = wire.packed_of(header, buffers, "answer") if header["status"] == "ok" else None
                replies.append((header, answer))
        return replies

    return asked


def only(replies):
    ((header, _),) = replies
    return header


QUIET = {
    "operators": [],
    "launch_operators": [],
    "refused": "",
    "scalars": [],
    "threads": 0,
    "aliases_earlier": False,
    "types": [],
    "globals": [],
    "accesses": [],
}


def noted(header):
    """The guards' fields that say anything."""
    return {k: header[k] for k, quiet in QUIET.items() if header[k] != quiet}


def wrapper(body, before=COPY):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return f"{before}\ndef wrapper(self):\n{lines}"


def kernel(body, launch):
    """A wrapper that launches `kernel` with `launch`, on `self` (x), an output of 50 (out) and an int32 counter."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return wrapper(
        f"x, out = self, torch.full((50,), 7.0)\ncounter = torch.zeros(1, dtype=torch.int32)\n{launch}\nreturn out",
        f"@triton.jit\ndef kernel(x, out, counter, BLOCK: tl.constexpr):\n    p = tl.program_id(0)\n{lines}",
    )


# ---- what the wrapper asks for ------------------------------------------------------------------------------------

OPERATORS = {
    "return torch.exp(self)": ["aten::exp"],
    "return abs(self)": ["aten::abs"],
    "return [m.exp(self) for m in (torch,)][0]": ["aten::exp"],
    "return torch.ops.aten.exp.default(self)": ["aten::exp"],
    "return torch.zeros_like(self).add_(self)": ["aten::zeros_like", "aten::add_.Tensor"],
    "out = copied(self)\nout[out < 0] = 0\nreturn out": ["aten::lt.Scalar", "aten::lift_fresh", "aten::index_put_"],
    "with torch.utils._python_dispatch._disable_current_modes():\n    return torch.exp(self)": ["aten::exp"],
    "with torch._C._DisableTorchDispatch():\n    return torch.softmax(self, 0)": ["aten::_softmax"],
    "return torch.from_numpy(self.numpy() * 2)": ["Tensor.numpy"],
    "return torch.tensor([math.exp(v) for v in self.tolist()])": ["Tensor.tolist", "aten::lift_fresh"],
    "return copied(self).apply_(math.exp)": ["Tensor.apply_"],
    "out = copied(self)\n"
    "kernel_copy[lambda meta: (out.copy_(self.exp()), (4,))[1]](self, out, 50, BLOCK=16)\nreturn out": [
        "aten::exp",
        "aten::copy_",
    ],
}


@pytest.mark.parametrize("body", OPERATORS)
def test_operators_of_the_wrapper(ask, body):
    header = only(ask(wrapper(body)))
    assert header["operators"][: len(OPERATORS[body])] == OPERATORS[body], header
    assert header["launch_operators"] == []


def test_memory_views_and_metadata_are_no_operators(ask):
    body = """
x = self.view(5, 10).t().unsqueeze(0).expand(3, 10, 5)[1:, 2:, 1]
out = torch.empty_strided(x.shape, x.stride())
torch.empty(0).set_(out.untyped_storage())
assert x.is_contiguous() is False and torch.result_type(x, 1.0) and x.contiguous is not None
return copied(self.reshape(5, 10).contiguous().flatten().to(torch.float32).detach())
"""
    header = only(ask(wrapper(body)))
    assert header["status"] == "ok" and noted(header) == {}


def test_operators_of_a_module_and_of_custom_operators_are_noted(ask):
    module = COPY + "TABLE = torch.arange(9).exp()\n"
    assert "aten::exp" in only(ask(wrapper("return copied(self)", module)))["operators"]
    custom = COPY + (
        "lib = torch.library.Library('mine', 'FRAGMENT')\nlib.define('f(Tensor(a) x) -> Tensor(a)')\n"
        "lib.impl('f', lambda x: x.exp(), 'CPU')\n"
    )
    header = only(ask(wrapper("return torch.ops.mine.f(self)", custom)))
    assert "mine::f" in header["operators"] and "torch.library registrations" in header["globals"]


@pytest.mark.parametrize("mode", [EXECUTE, COMPILE])
@pytest.mark.parametrize("text", ["str(kernel_copy)", "f'{[kernel_copy]}'", "'%s' % kernel_copy", "[*map(repr, K)]"])
def test_texts_of_kernels_are_noted(ask, mode, text):
    source = wrapper(f"K = (kernel_copy,)\nlen({text})\nreturn copied(self)")
    assert noted(only(ask(source, mode=mode))) == {"operators": ["str of kernel_copy"]}


def test_operators_inside_launches_are_told_apart(ask):
    body = kernel(
        "OUT.copy_(torch.exp(X))\ntl.store(out, 1.0)",
        "global X, OUT\nX, OUT = self, out\nkernel[(1,)](x, out, counter, 4)",
    )
    header = only(ask(body))
    assert header["launch_operators"] == ["aten::exp", "aten::copy_"]
    assert header["operators"] == ["aten::full", "aten::zeros"]


@pytest.mark.parametrize(
    ("to", "given", "operator"),
    [
        ("torch.int64", "self", "aten::copy_ (float32 to int64)"),
        ("torch.bool", "self", "aten::copy_ (float32 to bool)"),
        ("torch.complex64", "torch.view_as_complex(self.view(25, 2)).conj()", "aten::copy_ (conj or neg bit)"),
        ("torch.float32", "self", "aten::copy_"),
    ],
)
def test_copies_that_compute_are_told_from_those_that_only_copy(ask, to, given, operator):
    for call in ("out.copy_(given)", "out[:] = given"):
        body = f"given = {given}\nout = torch.empty(given.shape, dtype={to})\n{call}\nreturn copied(self)"
        assert only(ask(wrapper(body)))["operators"] == [operator]


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        ("self.to(torch.float16)", "aten::_to_copy"),
        ("self.double()", "aten::_to_copy"),
        ("self.to(torch.int64)", "aten::_to_copy (float32 to int64)"),
        ("self.bool()", "aten::_to_copy (float32 to bool)"),
        ("self.narrow(0, 0, 5).zero_()", "aten::zero_ of a part"),
        ("self[1:].copy_(torch.empty(49))", "aten::copy_ of a part"),
        ("torch.empty(3).fill_(1)", "aten::fill_.Scalar"),
        ("self.zero_()", "aten::zero_"),
    ],
)
def test_conversions_and_writes_of_parts_have_names_of_their_own(ask, call, operator):
    header = only(ask(wrapper(f"{call}\nreturn copied(self)")))
    assert header["operators"] == [operator]
    changed = ["argument self was written during the call, and may be as it was: leave it alone"]
    assert header["types"] == (changed if "self" in call and "_(" in call else [])


# ---- scalars ------------------------------------------------------------------------------------------------------

COUNTED = wrapper(
    "n = torch.zeros(1, dtype=torch.int64)\nkernel_count[(1,)](n)\n"
    "n = int(n)\nreturn copied(self) if n == 3 else torch.empty(n)",
    COPY + "\n@triton.jit\ndef kernel_count(n):\n    tl.store(n, 3)\n",
)


def test_scalars_are_reported_and_answered(ask):
    executed = only(ask(COUNTED))
    assert executed["scalars"] == [3] and executed["kernels"] == ["kernel_copy", "kernel_count"]
    unanswered = only(ask(COUNTED, mode=COMPILE))
    assert unanswered["scalars"] == [0] and unanswered["kernels"] == ["kernel_count"]
    answered = only(ask(COUNTED, {"scalars": [3]}, mode=COMPILE))
    assert answered["scalars"] == [3] and answered["kernels"] == ["kernel_copy", "kernel_count"]
    many = only(ask(wrapper("return copied(self) if sum(v.item() for v in self) > 99 else copied(self)")))
    assert many["scalars"] == X.tolist()


# ---- launches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [EXECUTE, COMPILE])
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("[self]", "list"),
        ("{1: self}", "dict"),
        ("(self.shape, [1])", "list"),
        ("type('Box', (), {})()", "Box"),
        ("__import__('numpy').ones(3)", "ndarray"),
        ("'text'", "str"),
        ("self.as_subclass(type('T', (torch.Tensor,), {}))", "T"),
    ],
)
def test_foreign_arguments_of_a_launch(ask, mode, given, kind):
    source = wrapper(
        f"try:\n    kernel_any[(1,)](self, {given})\nexcept TypeError:\n    pass\nreturn self",
        "@triton.jit\ndef kernel_any(x, box):\n    tl.store(x, 1.0)\n",
    )
    header = only(ask(source, mode=mode))
    assert [t for t in header["types"] if t.startswith(f"kernel_any: argument box is a {kind};")]


@pytest.mark.parametrize("mode", [EXECUTE, COMPILE])
def test_honest_arguments_of_a_launch(ask, mode):
    source = wrapper(
        "out = torch.empty_like(self)\n"
        "kernel_all[(1,)](self, out, tuple(self.shape), (self, 2.5), 1.5, True, None, tl.float32, 'a', helper,"
        " torch.Size((4,)))\n"
        "kernel_all[(1,)](self, out, self.stride(), (out, 1.0), 1, FLAG=False, NONE=None, TYPE=tl.float32, MODE='b',"
        " HELP=helper, SIZE=(4,))\nreturn out",
        "@triton.jit\ndef helper(x):\n    return x + 1\n\n"
        "@triton.jit\ndef kernel_all(x, out, shape, pair, f, FLAG: tl.constexpr, NONE: tl.constexpr,"
        " TYPE: tl.constexpr, MODE: tl.constexpr, HELP: tl.constexpr, SIZE: tl.constexpr):\n"
        "    i = tl.arange(0, SIZE[0])\n    tl.store(out + i, HELP(tl.load(x + i)).to(TYPE), mask=i < shape[0])\n",
    )
    header = only(ask(source, mode=mode))
    assert header["status"] == "ok" and noted(header) == {} and len(header["launched"]) == 2, header


@pytest.mark.parametrize("mode", [EXECUTE, COMPILE])
def test_autotuned_kernels_run_without_a_device(ask, mode):
    configs = "[triton.Config({'BLOCK': b}) for b in (8, 16)]"
    tuned = COPY.replace("@triton.jit", f"@triton.autotune(configs={configs}, key=['n'])\n@triton.jit").replace(
        ", BLOCK=16", ""
    )
    tuned = tuned.replace("(triton.cdiv(x.numel(), 16),)", "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)")
    for header, answer in ask(
        wrapper("return copied(self)", tuned),
        {},
        {"seed": 1, "configuration": 1},
        {"seed": 2, "configuration": 1},
        mode=mode,
    ):
        assert header["status"] == "ok" and noted(header) == {}, header
        assert mode == COMPILE or floats(answer) == X.tolist()


TUNED = """
@triton.autotune(configs=[triton.Config({{"BLOCK": b}}) for b in (32, 16)], key=["n"]{options})
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {body}
"""
IN_PLACE = "tl.store(out + i, 2 * tl.load(out + i, mask=i < n), mask=i < n)"
FROM_X = IN_PLACE.replace("load(out", "load(x")
INTO_SUM = "tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0)))"


@pytest.mark.parametrize(
    ("options", "body", "grid", "right"),
    [
        ("", IN_PLACE, "grid", [True, False, True]),
        (", restore_value=['out']", IN_PLACE, "grid", [True, True, True]),
        ("", FROM_X, "grid", [True, True, True]),
        ("", FROM_X, "(2,)", [True, True, False]),  # of which the second configuration needs more
    ],
)
def test_an_autotuner_runs_its_configurations(ask, options, body, grid, right):
    start = "copied(self)" if body is IN_PLACE else "torch.empty(50)"
    source = wrapper(
        f"out = {start}\ngrid = lambda meta: (triton.cdiv(50, meta['BLOCK']),)\n"
        f"tuned[{grid}](self, out, 50)\nreturn out",
        COPY + TUNED.format(options=options, body=body),
    )
    twice = (2 * X).tolist()
    assert [
        floats(answer) == twice
        for _, answer in ask(source, {}, {"seed": 1, "configuration": 1}, {"seed": 2, "configuration": 1})
    ] == right


@pytest.mark.parametrize(
    ("options", "start", "right"),
    [
        ("", "torch.zeros(())", [True, False, True]),
        (", reset_to_zero=['out']", "torch.zeros(())", [True, True, True]),
        (", reset_to_zero=['out']", "torch.ones(())", [False, True, False]),  # only the call that tunes resets
    ],
)
def test_an_autotuner_resets_what_it_is_told_to(ask, options, start, right):
    source = wrapper(
        f"out = {start}\ntuned[lambda meta: (triton.cdiv(50, meta['BLOCK']),)](self, out, 50)\nreturn out",
        TUNED.format(options=options, body=INTO_SUM),
    )
    got = [
        floats(answer)[0]
        for _, answer in ask(
            source, {}, {"seed": 1, "configuration": 1}, {"seed": 2, "configuration": 1}, self=torch.ones(50)
        )
    ]
    assert [value == 50 for value in got] == right


def test_an_autotuner_of_too_many_configurations(ask):
    source = wrapper(
        "out = torch.empty(50)\ntuned[(2,)](self, out, 50)\nreturn out",
        TUNED.replace("(32, 16)", "(*[32] * 65,)").format(options="", body=FROM_X),
    )
    header = only(ask(source))
    assert header["status"] == "error" and "65 configurations of an autotuner; at most 64" in header["text"]


@pytest.mark.parametrize("mode", [EXECUTE, COMPILE])
def test_what_is_launched_is_told_with_its_grid_and_arguments(ask, mode):
    """A grid function that changes its dict changes no launch."""
    launch = "kernel_copy[lambda m: (m.update(n=7) or 3, 2)](self, out, 50, BLOCK=32)"
    header = only(ask(wrapper(f"out = torch.empty_like(self)\n{launch}\nreturn out"), mode=mode))
    told = "kernel_copy[3, 2, 1](BLOCK=32, n=50, out_ptr=float32[50], x_ptr=float32[50])"
    assert header["launched"] == [told], header


@pytest.mark.parametrize(
    ("result", "right"), [("torch.empty(20000).narrow(0, 0, 50)", False), ("torch.empty(60).narrow(0, 0, 50)", True)]
)
def test_memory_that_a_result_keeps(ask, result, right):
    header = only(ask(wrapper(f"out = {result}\nkernel_copy[(4,)](self, out, 50, BLOCK=16)\nreturn out")))
    assert (header["types"] == []) == right, header


def test_a_function_of_the_device_library_that_is_not_known(ask):
    source = kernel("tl.store(out + p, libdevice.j0(tl.load(x + p)))", "kernel[(9,)](x, out, counter, 1)")
    header = only(ask("from triton.language.extra import libdevice\n" + source))
    assert header["status"] == "error" and "libdevice's __nv_j0f is not known here" in header["text"]


def floats(answer):
    ref = answer.tensors[answer.tree["return"]["tensor"]]
    return np.frombuffer(answer.data[ref.group], np.float32)[ref.offset // 4 :].tolist()


# ---- threads, types, aliasing, memory -----------------------------------------------------------------------------

BODIES_WITH_THREADS = (
    "import threading\nt = threading.Thread(target=lambda: self.exp())\nt.start()\nt.join()\nreturn copied(self)",
    "import _thread, time\n_thread.start_new_thread(self.exp, ())\ntime.sleep(0.1)\nreturn copied(self)",
)
LATE = "import threading, time\nout = copied(self)\ndef late():\n    time.sleep({})\n    out.fill_(0)\n"


@pytest.mark.parametrize("body", BODIES_WITH_THREADS)
def test_operators_of_threads(ask, body):
    assert only(ask(wrapper(body), mode=THREADS))["operators"] == ["aten::exp"]
    assert "can't start new thread" in only(ask(wrapper(body)))["text"]


def test_threads_that_live_on(ask):
    ((header, answer),) = ask(
        wrapper(LATE.format(0.5) + "threading.Thread(target=late, daemon=True).start()\nreturn out"), mode=THREADS
    )
    assert header["threads"] == 1 and floats(answer) == X.tolist()
    joined = LATE.format(0) + "t = threading.Thread(target=late)\nt.start()\nt.join()\nreturn copied(self)"
    header = only(ask(wrapper(joined), mode=THREADS))
    assert header["threads"] == 0 and header["operators"] == ["aten::fill_.Scalar"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return copied(self).as_subclass(type('Yes', (torch.Tensor,), {}))", "the result has class Yes"),
        ("return torch.nn.Parameter(copied(self))", "the result has class Parameter"),
        ("return torch.empty(50, device='meta')", "the result has device meta"),
        ("return copied(self).view(5, 10).to_sparse_csr()", "the result has layout torch.sparse_csr"),
        ("return copied(self).requires_grad_()", "the result has requires_grad set"),
        ("return torch._neg_view(copied(self))", "the result has its neg bit set"),
        ("self.requires_grad_()\nreturn copied(self.detach())", "an argument has requires_grad set"),
        ("self.__class__ = torch.nn.Parameter\nreturn copied(self.detach())", "argument self has class Parameter"),
    ],
)
def test_types_of_results(ask, body, text):
    assert text in only(ask(wrapper(body)))["types"]


@pytest.mark.parametrize(
    ("result", "shared"),
    [
        (lambda x: torch.ones(50).expand(2, 50), True),
        (lambda x: (torch.ones(50), torch.ones(1, 9).expand(2, 9)), True),
        (lambda x: torch.ones(9).unfold(0, 3, 1), True),
        (lambda x: x.expand(2, 50), False),
        (lambda x: torch.ones(50).expand(1, 50), False),
        (lambda x: torch.ones(0, 1).expand(0, 9), False),
        (lambda x: torch.ones(6, 5)[1::2, ::2].t(), False),
        (lambda x: torch.ones(99).as_strided((3, 2), (2, 3)), False),
        (lambda x: torch.sparse_coo_tensor(torch.zeros(1, 3).long(), torch.ones(1).expand(3), (5,)), True),
        (lambda x: torch.sparse_coo_tensor(torch.zeros(1, 1).long().expand(1, 3), torch.ones(3), (5,)), True),
        (lambda x: torch.sparse_coo_tensor(torch.zeros(1, 3).long(), torch.ones(3), (5,)), False),
        (lambda x: torch.sparse_coo_tensor(torch.zeros(1, 50).long(), x, (5,)), False),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_elements_of_a_result_that_share_memory(result, shared):
    found = complaints("aten::exp", {"self": X}, result(X))
    assert [text for text in found if "elements that share memory" in text] == found
    assert bool(found) == shared


def test_bits_that_were_given_or_that_a_view_sets(ask):
    source = "def wrapper(self):\n    return self.view(self.shape)\n"
    given = torch.view_as_complex(torch.ones(3, 2)).conj()
    assert only(ask(source, self=given))["types"] == []
    assert (
        only(ask("def wrapper(self):\n    return self.conj()\n", overload="aten::_conj", self=given.conj()))["types"]
        == []
    )


def test_aliasing_with_earlier_results(ask):
    cached = wrapper(
        "if 'out' not in cache:\n    cache['out'] = copied(self)\nreturn cache['out'][:9]", COPY + "cache = {}\n"
    )
    assert [h["aliases_earlier"] for h, _ in ask(cached, {}, {}, {"reuse": True})] == [False, True, True]
    for body in ("return copied(self)", "return self.view(50)"):
        assert [h["aliases_earlier"] for h, _ in ask(wrapper(body), {}, {"reuse": True}, {})] == [False] * 3


def test_memory_is_used_again_on_request(ask):
    source = wrapper("seen.append(self.data_ptr())\nraise ValueError(len(set(seen)))", "seen = []\n")
    texts = [h["text"].split("\n")[0] for h, _ in ask(source, {}, {"reuse": True}, {}, {"reuse": True})]
    assert texts[:2] == ["ValueError: 1"] * 2 and texts[2] == texts[3] == "ValueError: 2"


def test_memory_that_nobody_wrote_is_poisoned(ask):
    ((_, answer),) = ask(wrapper("return torch.empty_like(self)"), mode=COMPILE)
    assert np.isnan(floats(answer)).all()


ALLOCATED = (
    "torch.empty(999)",
    "torch.empty_strided((999,), (1,))",
    "self.new_empty(999)",
    "torch.empty_like(self.expand(999, 50)[:, 0])",
    "torch.empty(0).resize_(999)",
)


@pytest.mark.parametrize("allocation", ALLOCATED)
def test_no_value_is_right_because_nobody_wrote_it(ask, allocation):
    requests = ({}, {"seed": 1, "configuration": 1}, {"seed": 2, "configuration": 1})
    first, second, third = (np.isnan(floats(a)) for _, a in ask(wrapper(f"return {allocation}"), *requests))
    assert 400 < first.sum() < 600 and (first != second).all() and (first == third).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "bfloat16", "complex64"])
def test_poison_of_every_dtype_has_two_values(ask, dtype):
    ((_, answer),) = ask(wrapper(f"return torch.empty(99, dtype=torch.{dtype})"))
    size = getattr(torch, dtype).itemsize
    got = {bytes(answer.data[1][i : i + size]) for i in range(0, 99 * size, size)}
    assert len(got) == 2 and (dtype != "bool" or got == {b"\0", b"\1"})


def test_memory_that_grows_keeps_what_was_written(ask):
    ((_, answer),) = ask(wrapper("return copied(self).resize_(90)"))
    got = floats(answer)
    assert got[:50] == X.tolist() and 5 < np.isnan(got[50:]).sum() < 35


def test_a_kernel_that_skips_elements(ask):
    body = "i = p * BLOCK + tl.arange(0, BLOCK)\nv = tl.load(x + i, mask=i < 50)\n"
    for condition, right in (("v >= 0", False), ("i >= 0", True)):
        store = f"tl.store(out + i, tl.sqrt(v), mask=(i < 50) & ({condition}))"
        source = kernel(body + store, "out = torch.empty(50)\nkernel[(4,)](x, out, counter, BLOCK=16)")
        ((_, answer),) = ask(source)
        assert np.allclose(floats(answer), X.sqrt().numpy(), equal_nan=True) == right


# ---- global state -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("torch.set_default_dtype(torch.float64)", "default dtype"),
        ("torch.set_num_threads(2)", "number of threads"),
        ("torch._C._set_deterministic_algorithms(False)", "deterministic algorithms"),
        (
            "torch.utils.deterministic.fill_uninitialized_memory = False",
            "torch.utils.deterministic.fill_uninitialized_memory",
        ),
        ("torch.set_float32_matmul_precision('medium')", "float32 matmul precision"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "cuda matmul tf32"),
        ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark"),
        ("torch.set_grad_enabled(True)", "grad mode"),
        ("torch.set_default_device('meta')", "default device"),
        ("torch.set_flush_denormal(True)", "flush denormal"),
        ("torch.manual_seed(3)", "torch RNG state"),
        ("__import__('random').random()", "random state"),
        ("__import__('numpy').random.rand()", "NumPy RNG state"),
        ("torch.os.environ['A'] = 'b'", "environment"),
        ("torch.allclose = lambda *a, **k: True", "torch.allclose"),
        ("torch.Tensor.exp = torch.Tensor.abs", "torch.Tensor.exp"),
        ("torch.Tensor.__torch_function__ = classmethod(lambda *a: 0)", "torch.Tensor.__torch_function__"),
        ("__builtins__['abs'] = lambda x: x", "builtins.abs"),
        ("tl.load = 3", "triton.language.load"),
        ("triton.runtime.jit.JITFunction.run = lambda *a, **k: 0", "triton.runtime.jit.JITFunction.run"),
        ("torch.sys.modules['verify.sandbox.wire'].send = print", "verify.sandbox.wire.send"),
        ("torch.sys.setrecursionlimit(99999)", "recursion limit"),
    ],
)
def test_global_state(ask, body, name):
    once = f"if not done:\n    done.append(1)\n    {body}\nreturn torch.empty(50)"
    (first, _), (second, _) = ask(wrapper(once, COPY + "done = []\n"), {}, {})
    assert name in first["globals"], first
    assert second["globals"] == [], "the state was put back"


# ---- accesses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "argument", "offset"),
    [
        ("i = p * BLOCK + tl.arange(0, BLOCK)\ntl.store(out + i, 1.0)", "out", 200),
        ("i = p * BLOCK + tl.arange(0, BLOCK)\ntl.store(out + i, tl.load(x + i), mask=i < 50)", "x", 200),
        ("tl.store(out, tl.load(x - 1))", "x", -4),
        ("tl.store(out + 6000000000, 1.0)", "out", 24000000000),
        ("tl.atomic_add(out + 64, 1.0)", "out", 256),
        ("tl.atomic_cas(counter + 1, 0, 1)", "counter", 4),
        ("tl.store(tl.where(tl.arange(0, 2) == 0, out, x + 50), 1.0)", "x", 200),
    ],
)
def test_out_of_bounds(ask, body, argument, offset):
    header = only(ask(kernel(body, "kernel[(4,)](x, out, counter, BLOCK=16)")))
    assert header["status"] == "ok" and not header["outside"]
    found = next(a for a in header["accesses"] if a["kind"] == "bounds")
    line = HEAD.count("\n") + 4 + body.count("\n")
    assert found["line"] == line
    assert (found["argument"], found["offset"], found["kernel"]) == (argument, offset, "kernel"), found
    assert len(found["program"]) == 3 and f"byte {offset}" in found["text"]


def test_forbidden_loads_are_poison_and_forbidden_stores_are_dropped(ask):
    body = "i = tl.arange(0, 64)\ntl.store(out + i, tl.load(x + i - 1))"
    ((header, answer),) = ask(kernel(body, "kernel[(1,)](x, out, counter, BLOCK=16)"))
    got = floats(answer)
    assert np.isnan(got[0]) and got[1:] == X.tolist()[:49]
    assert {a["argument"] for a in header["accesses"]} == {"x", "out"}


def test_addresses_of_nothing(ask):
    body = "tl.store((p + 4096).to(tl.int64).to(tl.pointer_type(tl.float32)), 1.0)"
    (found,) = only(ask(kernel(body, "kernel[(1,)](x, out, counter, BLOCK=16)")))["accesses"]
    assert found["kind"] == "bounds" and "belongs to no argument" in found["text"]


def test_views_reach_their_storage_and_arguments_their_span(ask):
    body = "i = tl.arange(0, BLOCK)\ntl.store(out + i, tl.load(x + i))"
    launch = "kernel[(1,)](x, out[20:30], counter, BLOCK=16)"
    assert noted(only(ask(kernel(body, launch)))) == {"operators": ["aten::full", "aten::zeros"]}
    header = only(ask(kernel(body, launch), self=torch.zeros(100)[40:50]))
    assert [(a["argument"], a["offset"]) for a in header["accesses"]] == [("x", 40)]


def test_arguments_that_are_empty(ask):
    body = "tl.store(out, tl.load(x))"
    (found,) = only(ask(kernel(body, "kernel[(1,)](x, out, counter, BLOCK=16)"), self=torch.empty(0)))["accesses"]
    assert (found["argument"], found["offset"]) == ("x", 0)
    assert "1 lanes load 4 bytes outside x, which is empty: at byte 0 (" in found["text"]
    (found,) = only(ask(kernel("tl.store(x - 1, 1.0)", "kernel[(1,)](out[:0], out, counter, BLOCK=16)")))["accesses"]
    assert found["offset"] == -4 and "which has bytes 0 to 200: at byte -4" in found["text"]


STORES = {
    "tl.store(x + 1, tl.load(x + 1))": 4,
    "tl.atomic_add(x + 2, 0.0)": 8,
    "i = tl.arange(0, 64)\ntl.store(x + i, tl.load(x + i, mask=i < 50), mask=i < 60)": 0,
}


@pytest.mark.parametrize("given", ["x", "x.view(5, 10).t()"])
@pytest.mark.parametrize("body", STORES)
def test_stores_into_what_the_overload_leaves_alone(ask, body, given):
    header = only(ask(kernel(body, f"kernel[(1,)]({given}, out, counter, BLOCK=16)")))
    found = next(a for a in header["accesses"] if a["kind"] == "argument")
    assert (found["argument"], found["offset"], found["program"]) == ("x", STORES[body], [0, 0, 0])
    assert "argument self, which this overload leaves alone" in found["text"]
    assert found["line"] == HEAD.count("\n") + 4 + body.count("\n")


def test_stores_into_what_the_overload_writes(ask):
    body = "\ndef wrapper({}):\n    kernel_copy[(4,)](self, {}, 50, BLOCK=16)\n    return {}\n"
    in_place = COPY + body.format("self", "self", "self")
    assert only(ask(in_place, overload="aten::exp_", self=X))["accesses"] == []
    out = COPY + body.format("self, *, out", "out", "out")
    assert only(ask(out, overload="aten::exp.out", self=X, out=torch.zeros(50)))["accesses"] == []
    assert only(ask(out, overload="aten::exp.out", self=X, out=X))["accesses"] == []
    assert only(ask(wrapper("return copied(self)")))["accesses"] == []


def test_alignment(ask):
    body = "tl.store((out.to(tl.int64) + 2).to(tl.pointer_type(tl.float32)), 1.0)"
    (found,) = only(ask(kernel(body, "kernel[(1,)](x, out, counter, BLOCK=16)")))["accesses"]
    assert (found["kind"], found["argument"], found["offset"]) == ("alignment", "out", 2)
    shifted = kernel("i = 1 + tl.arange(0, BLOCK)\ntl.store(out + i, 1.0)", "kernel[(1,)](x, out, counter, BLOCK=16)")
    assert only(ask(shifted))["accesses"] == []
    (found,) = only(ask(shifted, alignment=32, self=X))["accesses"]
    assert (found["kind"], found["offset"]) == ("alignment", 4)
    aligned = shifted.replace("1 + tl", "8 + tl")
    assert only(ask(aligned, alignment=32, self=X))["accesses"] == []


RACES = {
    "two programs store different values": "tl.store(out, p.to(tl.float32))",
    "overlapping blocks": "i = p * 8 + tl.arange(0, BLOCK)\ntl.store(out + i, (i + p).to(tl.float32), mask=i < 50)",
    "one loads what another stores": "tl.store(out + p, 1.0)\ntl.store(out + 20 + p, tl.load(out + (p + 1) % 4))",
    "a sum without atomics": "tl.store(out, tl.load(out) + 1.0)",
    "a flag": "if p == 0:\n    tl.store(counter, 1)\nelse:\n    tl.store(out + p, tl.load(counter).to(tl.float32))",
    "an atomic before the store does not order": "tl.atomic_add(counter, 1)\ntl.store(out, 1.0 * p)",
    "atomics of one program": "tl.atomic_add(out, 1.0, scope='cta')",
    "a wide atomic and a narrow one": "if p == 0:\n    tl.atomic_add(out, 1.0)\n"
    "else:\n    tl.atomic_add(out, 1.0, scope='cta')",
    "a relaxed counter publishes nothing": "tl.store(out + p, 1.0)\nif tl.atomic_add(counter, 1, sem='relaxed') == 3:\n"
    "    tl.store(out + 20, tl.sum(tl.load(out + tl.arange(0, 4))))",
    "a releasing counter acquires nothing": "tl.store(out + p, 1.0)\n"
    "if tl.atomic_add(counter, 1, sem='release') == 3:\n"
    "    tl.store(out + 20, tl.sum(tl.load(out + tl.arange(0, 4))))",
    "a relaxed lock": "while tl.atomic_cas(counter, 0, 1, sem='relaxed') == 1:\n    pass\n"
    "tl.store(out, tl.load(out) + 1.0)\ntl.atomic_xchg(counter, 0, sem='relaxed')",
}


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", RACES)
def test_races(ask, name, seed):
    header = only(ask(kernel(RACES[name], "kernel[(4,)](x, out, counter, BLOCK=16)"), {"seed": seed}))
    assert [a for a in header["accesses"] if a["kind"] == "race"], header
    assert all(a["kind"] == "race" and "programs (" in a["text"] for a in header["accesses"])


NO_RACES = {
    "disjoint blocks": "i = p * BLOCK + tl.arange(0, BLOCK)\ntl.store(out + i, 1.0 * p, mask=i < 50)",
    "equal values": "tl.store(out, 3.0)",
    "atomics": "tl.atomic_add(out, 1.0)",
    "in place": "i = p * BLOCK + tl.arange(0, BLOCK)\nm = i < 50\n"
    "tl.store(out + i, tl.load(out + i, mask=m) * 2, mask=m)",
    "twice by one program": "tl.store(out + p, 0.0)\ntl.store(out + p, tl.load(out + p) + 1)",
    "inputs are shared": "tl.store(out + p, tl.sum(tl.load(x + tl.arange(0, BLOCK))))",
    "a lock": "while tl.atomic_cas(counter, 0, 1) == 1:\n    pass\n"
    "tl.store(out, tl.load(out) + 1.0)\ntl.atomic_xchg(counter, 0)",
    "a lock that says so": "while tl.atomic_cas(counter, 0, 1, sem='acquire') == 1:\n    pass\n"
    "tl.store(out, tl.load(out) + 1.0)\ntl.atomic_xchg(counter, 0, sem='release', scope='sys')",
    "relaxed sums": "tl.atomic_add(out, 1.0, sem='relaxed')",
    "a narrow atomic on a cell of its own": "tl.atomic_add(out + p, 1.0, scope='cta')",
    "the last one sums up": "tl.store(out + p, 1.0)\n"
    "if tl.atomic_add(counter, 1) == 3:\n    tl.store(out + 20, tl.sum(tl.load(out + tl.arange(0, 4))))",
}


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", NO_RACES)
def test_no_races(ask, name, seed):
    header = only(ask(kernel(NO_RACES[name], "kernel[(4,)](x, out, counter, BLOCK=16)"), {"seed": seed}))
    assert header["status"] == "ok" and header["accesses"] == [], header


def test_orders_of_the_grid(ask):
    body = "i = tl.atomic_add(counter, 1)\ntl.store(out + i, 1.0 * (p * 6 + tl.program_id(1) * 2 + tl.program_id(2)))"
    source = kernel(body, "kernel[(5, 3, 2)](x, out, counter, BLOCK=16)")
    orders = [
        floats(a)[:30]
        for _, a in ask(source, {}, {"seed": 1, "configuration": 1}, {"seed": 2, "configuration": 1}, {"seed": 1})
    ]
    natural, first, second, again = orders
    assert natural == sorted(natural) == list(range(30))
    assert sorted(first) == sorted(second) == natural and first != second and first == again != natural


@pytest.mark.parametrize("seed", range(1, 5))
def test_programs_run_between_a_load_and_an_atomic(ask, seed):
    """A counter that is loaded and then set by an atomic loses counts in some order."""
    body = "seen = tl.load(counter)\ntl.atomic_xchg(counter, seen + 1)\ntl.store(out + p, 1.0 * seen)"
    ((_, answer),) = ask(kernel(body, "kernel[(9,)](x, out, counter, BLOCK=16)"), {"seed": seed})
    assert len({*floats(answer)[:9]}) < 9


@pytest.mark.parametrize("programs", [2, 3, 9])
def test_no_other_order_is_the_natural_one(ask, programs):
    body = "i = tl.atomic_add(counter, 1)\ntl.store(out + i, 1.0 * p)"
    ((_, reverse),) = ask(kernel(body, f"kernel[({programs},)](x, out, counter, BLOCK=16)"), {"seed": 1})
    order = floats(reverse)[:programs]
    assert sorted(order) == list(range(programs)) != order


WAITS = {
    "while tl.load(counter) == 0:\n    pass": True,
    "while tl.atomic_add(counter, 0) == 0:\n    pass": True,
    "while tl.atomic_cas(counter, 1, 1) == 0:\n    pass": True,
    "s = 0.0\nfor k in range(30000):\n    s += tl.load(x + k % 50)\ntl.store(out, s)": False,
    "for k in range(30000):\n    tl.atomic_add(counter, 1)": False,
}


@pytest.mark.parametrize("body", sampled(WAITS, [[*WAITS][i] for i in (0, 2, 4)]))
def test_a_program_that_waits_for_another(ask, body):
    header = only(ask(kernel(body, "kernel[(1,)](x, out, counter, BLOCK=16)")))
    assert "waits for another program" in header["text"] if WAITS[body] else header["status"] == "ok", header


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_exchange_of_any_dtype(ask, dtype):
    launch = "kernel[(1,)](y, out, counter, BLOCK=16)"
    body = "i = tl.arange(0, 16)\ntl.store(out + i, tl.atomic_xchg(x + i, (2 * i).to(x.dtype.element_ty), mask=i < 9))"
    source = kernel(body, f"y = torch.full((16,), 3, dtype=torch.{dtype})\n{launch}\n{launch}")
    assert only(ask(source, mode=COMPILE))["refused"] == ""
    ((header, answer),) = ask(source)
    assert header["status"] == "ok" and floats(answer)[:9] == [2.0 * i for i in range(9)], header
