"""Recording changes no operator of PyTorch: neither what is called nor a bit of what comes out."""

import warnings
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
import torch
from torch._library.custom_ops import OPDEFS
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from capture import Recorder
from traces import Trace
from traces.fingerprint import fingerprint
from traces.overloads import name_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

UNINITIALISED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
# Whose derivatives PyTorch computes by another formula where any dispatch mode is in force (isTensorSubclassLike).
UNDER_A_MODE = ("linalg_eig", "masked_prod", "ormqr", "prod")
UNSTEADY = ("linalg_lstsq",)  # its bits depend on where in memory the arguments lie, without a recorder too
DATABASE = [i for i in op_db if torch.float32 in i.supported_dtypes("cpu") and i.name not in UNINITIALISED]
COMPOSITE, ON_CPU = (
    lambda name, key=key: torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    for key in ("CompositeImplicitAutograd", "CPU")
)


class Names(TorchDispatchMode):
    """Which overloads a plain dispatch mode sees, how often; of what PyTorch writes in Python, those that it calls."""

    supports_higher_order_operators = True

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if getattr(func, "namespace", None) == "torch_nn":  # run below autograd, where composite operators arrive whole
            with self:
                return OPDEFS[func._schema.name]._init_fn(*args, **(kwargs or {}))
        if getattr(func, "namespace", None) == "aten" and COMPOSITE(func.name()) and not ON_CPU(func.name()):
            with self:
                return func.decompose(*args, **(kwargs or {}))
        if isinstance(func, torch._ops.OpOverload) and func.namespace not in ("profiler", "prim"):
            self.seen[name_of(func)] += 1
        return func(*args, **(kwargs or {}))


def run(info, sample):
    """Forward and backward of one sample: results and gradients, or the error."""
    torch.default_generator.manual_seed(1)
    try:
        result = info.op(sample.input, *sample.args, **sample.kwargs)
        leaves = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        outputs = [t for t in leaves if t.requires_grad]
        inputs = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]
        inputs = [t for t in inputs if t.requires_grad]
        if outputs and inputs:
            ones = [torch.ones_like(t) for t in outputs]
            leaves += [g for g in torch.autograd.grad(outputs, inputs, ones, allow_unused=True) if g is not None]
        return [t.detach() for t in leaves]
    except Exception as error:  # noqa: BLE001 - samples may raise anything, which has to be the same too
        return repr(error)


def samples(info, most):
    torch.default_generator.manual_seed(zlib.crc32(info.formatted_name.encode()))
    grad = info.supports_autograd and torch.float32 in info.supported_backward_dtypes("cpu")
    return list(islice(info.sample_inputs("cpu", torch.float32, requires_grad=grad), most))


def bits(found):
    return found if isinstance(found, str) else fingerprint({"out": found})


def compare(path, most):
    """What differs, by operator. most: samples of each operator, None for all."""
    differs, steps = {}, []
    with warnings.catch_warnings(), Recorder(path) as recorder:
        warnings.simplefilter("ignore")
        for info in DATABASE:
            with recorder.pause():
                plain, counts = [bits(run(info, s)) for s in samples(info, most)], []
                for i, s in enumerate(samples(info, most)):
                    with Names() as names:
                        found = run(info, s)
                    counts.append(names.seen)
                    plain[i] = bits(found) if info.formatted_name in UNDER_A_MODE else plain[i]
                given = samples(info, most)
            for index, sample in enumerate(given):
                found = run(info, sample)
                recorder.step()
                steps.append((info.formatted_name, counts[index]))
                with recorder.pause():
                    if bits(found) != plain[index] and info.formatted_name not in UNSTEADY:
                        differs[info.formatted_name] = "other bits"
    assert not recorder.errors and not recorder.failure
    seen = [Counter() for _ in steps]
    for s in Trace.open(path).signatures.values():
        for first, last, calls in s.steps:
            for step in range(first, last + 1):
                seen[step][s.overload] += calls
    for (name, expected), found in zip(steps, seen, strict=True):
        if expected != found:
            differs[name] = f"lacks {expected - found}, has {found - expected}"
    return differs


def differences(path, most):
    """`compare` in a thread of its own: PyTorch formats the stack whenever it seeds, and pytest's is deep."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(compare, path, most).result()


def test_operators_are_asked_for_as_without_the_recorder(tmp_path):
    assert differences(tmp_path / "a.trace", 2) == {}


@pytest.mark.sweep
@pytest.mark.timeout(3600)
def test_operators_are_asked_for_as_without_the_recorder_in_all_samples(tmp_path):
    assert differences(tmp_path / "a.trace", None) == {}
