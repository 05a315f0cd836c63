"""PyTorch's device-generic test machinery and its operator samples, on device `sim` with the CPU executing.

The host tensor below a tensor of the device goes through the same kernel, so everything equals the CPU bit for bit.
"""

import warnings
from itertools import islice

import pytest
import torch

from capture import sim

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_utils import TestCase

SAMPLES = 5  # of each operator
COMPUTE = set(
    """
    add addmm amax argmax bmm cat clamp cumsum div exp gather index_add index_put index_select lerp linspace log_softmax
    logsumexp masked_fill matmul mean mm mul nonzero norm pow repeat scatter_add sigmoid softmax sort sqrt std sum tanh
    topk tril where arange zeros_like full_like unique take_along_dim nn.functional.batch_norm nn.functional.conv2d
    nn.functional.cross_entropy nn.functional.embedding nn.functional.gelu nn.functional.interpolate
    nn.functional.layer_norm nn.functional.max_pool2d nn.functional.mse_loss nn.functional.pad
    nn.functional.scaled_dot_product_attention
    """.split()  # noqa: SIM905
)
VIEWS = set(
    """
    as_strided chunk diagonal expand movedim narrow permute select split squeeze swapaxes t transpose unbind unfold
    unsqueeze view view_as
    """.split()  # noqa: SIM905
)

LEFT_OUT = {
    ("norm", "nuc"),  # of a tensor subclass PyTorch computes U and V too, and LAPACK's singular values then differ
    ("as_strided", "partial_views"),  # its samples are parts of larger storages, of which `moved` knows nothing
}
ONLY_CONTIGUOUS = {"nn.functional.gelu"}  # torch 2.13's CPU kernel writes another place than a strided `out`


def selected(names, **having):
    found = [op for op in op_db if op.name in names and all(getattr(op, k) == v for k, v in having.items())]
    found = [op for op in found if (op.name, op.variant_test_name) not in LEFT_OUT]
    return ops(found, allowed_dtypes=(torch.float32,))


def leaves(value):
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def moved(sample, device):
    """The same sample on a device, its strides included."""

    def move(value):
        if not isinstance(value, torch.Tensor):
            return torch.device(device) if isinstance(value, torch.device) else value
        held = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
        return held.copy_(value.detach()).requires_grad_(value.requires_grad)

    return sample.transform(move)


def call(function, sample, **more):
    return function(sample.input, *sample.args, **{**sample.kwargs, **more})


class TestSim(TestCase):
    def samples(self, op, device, noncontiguous=False, grad=False):
        for sample in islice(op.sample_inputs("cpu", torch.float32, requires_grad=grad), SAMPLES):
            sample = sample.noncontiguous() if noncontiguous else sample
            there = moved(sample, device)
            if "device" in there.kwargs:
                there.kwargs["device"] = device
            yield sample, there

    def same(self, here, there):
        here, there = leaves(here), leaves(there)
        self.assertEqual(len(here), len(there))
        for a, b in zip(here, there, strict=True):
            self.assertEqual(b.device.type, "sim")
            self.assertEqual((a.shape, a.stride(), a.dtype), (b.shape, b.stride(), b.dtype))
            self.assertEqual(a.detach(), b.detach().cpu(), rtol=0, atol=0, equal_nan=True)

    def differentiated(self, op, sample):
        result = call(op, sample)
        outputs = [t for t in leaves(sample.output_process_fn_grad(result)) if t.requires_grad]
        inputs = [t for t in leaves((sample.input, sample.args, sample.kwargs)) if t.requires_grad]
        if not outputs or not inputs:
            return result, []
        given = [torch.ones(t.shape).to(t.device) for t in outputs]
        gradients = torch.autograd.grad(outputs, inputs, given, allow_unused=True)
        return result, [g for g in gradients if g is not None]

    @selected(COMPUTE)
    def test_results_and_gradients(self, device, dtype, op):
        for noncontiguous in (False, True):
            for here, there in self.samples(op, device, noncontiguous, grad=op.supports_autograd):
                self.same(self.differentiated(op, here), self.differentiated(op, there))

    @selected(COMPUTE, supports_out=True)
    def test_out(self, device, dtype, op):
        for here, there in self.samples(op, device):
            expected = call(op, here)
            if not isinstance(expected, torch.Tensor):
                continue
            spaced = torch.empty(*expected.shape, 2, dtype=expected.dtype)[..., 0]
            for out in (torch.empty_like(expected), *(() if op.name in ONLY_CONTIGUOUS else (spaced,))):
                written = torch.empty_strided(out.shape, out.stride(), dtype=out.dtype, device=device)
                address = sim.host(written).data_ptr()
                self.assertIs(call(op, there, out=written), written)
                self.assertEqual(sim.host(written).data_ptr(), address)
                self.same(call(op, here, out=out), written)

    @selected(COMPUTE)
    def test_in_place(self, device, dtype, op):
        for here, there in self.samples(op, device) if op.inplace_variant else ():
            if here.broadcasts_input:
                continue
            call(op.inplace_variant, here)
            self.assertIs(call(op.inplace_variant, there), there.input)
            self.same(here.input, there.input)

    @selected(VIEWS)
    def test_views_alias(self, device, dtype, op):
        for here, there in self.samples(op, device):
            for sample in (here, there):
                for number, view in enumerate(leaves(call(op, sample))):
                    view.fill_(number)
            self.same(here.input, there.input)
            self.assertNotEqual(there.input._version, 0)


with sim.executing(sim.on_cpu):
    instantiate_device_type_tests(TestSim, globals(), only_for=("sim", "privateuse1"))


@pytest.fixture(autouse=True)
def _cpu():
    with sim.executing(sim.on_cpu), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples that are deprecated usage
        yield
