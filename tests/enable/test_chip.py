"""Programs on a chip of one's own: `orion`, the C++ device in tests/support/chip, named by a platform file; and on sim.

PyTorch has room for one out-of-tree device in each process, so each topic runs in a process of its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from program import enable
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import enablekit
from enable.train.training_run import Recipe, train

SUPPORT = Path(__file__).parents[1] / "support"
PATHS = os.pathsep.join(map(str, (SUPPORT / "chip", SUPPORT)))
PLATFORM = """\
base: sim
device: orion
module: orionchip
launcher: interpreter
targets:
  - {backend: hip, arch: gfx942, warp_size: 64, shared_bytes: 65536, options: {num_warps: 8}}
"""
pytestmark = pytest.mark.timeout(900)  # the first import of orionchip builds it, and other processes wait
NANOGPT = {"n_layer": "1", "n_embd": "16", "n_head": "2", "block_size": "8"}
DLRM = {"rows": "20", "tables": "2", "lookups": "3"}


@pytest.mark.parametrize(
    "device, steps",
    [
        ("orion", 3),
        pytest.param("orion", 20, marks=pytest.mark.sweep),
        pytest.param("sim", 20, marks=pytest.mark.sweep),
    ],
)
def test_models_train_with_nothing_but_the_librarys_kernels(tmp_path, device, steps):
    finished = process(tmp_path, device, f"training:{steps}")
    assert (finished.returncode, finished.stdout) == (0, f"training:{steps} passed\n"), (
        finished.stdout + finished.stderr
    )


@pytest.mark.parametrize(
    "device, topics",
    {"orion": ("programs", "compiled", "devices", "fallback", "lazy"), "sim": ("programs", "compiled")}.items(),
)
def test_programs_of_a_device(tmp_path, device, topics):
    finished = process(tmp_path, device, *topics)
    output = "".join(f"{topic} passed\n" for topic in topics)
    assert (finished.returncode, finished.stdout) == (0, output), finished.stdout + finished.stderr


@pytest.mark.parametrize(
    "replaced, device, said",
    [
        (("", ""), "orionn", "unknown device 'orionn'; choose from cuda, xpu, sim, cpu, or write its platform file"),
        (
            ("module: orionchip", ""),
            "./orion.yaml",
            "names no device; add the device type and the module that provides",
        ),
        (
            ("orionchip", "orionchop"),
            "orion",
            "module 'orionchop' cannot be imported (ModuleNotFoundError: No module na",
        ),
        (("orionchip", "json"), "orion", "device after import json, not 'orion'; write the name"),
        (("orionchip", "2chip"), "orion", "orion.yaml:3: module: has to be the name of a Python module"),
        (("interpreter", "driver"), "orion", "orion.yaml:4: launcher: Input should be 'triton' or 'interpreter'"),
        (("num_warps", "warps"), "orion", "orion.yaml:6: targets.0.options.warps"),
        (("base: sim", "base: {"), "orion", "unknown device 'orion'"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(tmp_path, replaced, device, said):
    (tmp_path / "orion.yaml").write_text(PLATFORM.replace(*replaced).lstrip())
    for command in (["capture", "nanogpt"], ["run", "nanogpt"]):
        result = enable(*command, "--device", device, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "") and result.stderr.count("\n") == 1
        assert said in result.stderr


def test_a_device_of_two_files_is_ambiguous(tmp_path):
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text(PLATFORM.lstrip())
    result = enable("run", "nanogpt", "--device", "orion", cwd=tmp_path)
    assert result.returncode == 2 and "device 'orion' is in several platform files: ./a.yaml, ./b.yml" in result.stderr


def test_a_chip_that_lacks_a_kernel_says_how_to_get_one(tmp_path):
    (tmp_path / "orion.yaml").write_text(PLATFORM)
    (tmp_path / "mine.py").write_text(
        "import torch\n\ndef make(device):\n"
        "    model = torch.nn.Linear(2, 2)\n    batch = torch.ones(3, 2)\n"
        "    loss = lambda model, x: torch.fake_quantize_per_tensor_affine(model(x), 0.1, 0, -5, 5).sum()\n"
        "    model, batch = model.to(device), batch.to(device)\n"
        "    return model, batch, loss, torch.optim.SGD(model.parameters(), 0.1)\n"
    )
    result = program(tmp_path, "run", "mine:make", "--device", "orion", "--unverified")
    assert result.returncode == 1
    overload = "aten::_fake_quantize_per_tensor_affine_cachemask"
    assert (
        f"{overload.replace('_fake', 'fake')}" in result.stderr
        and "enable capture mine:make --device orion.yaml" in (result.stderr)
    )


def test_a_chips_blocks_serve_its_training(tmp_path):
    """The block says that erf is 0, so gelu is half of its argument, and the losses are not those of the CPU."""
    blocks = "lint:\n  base: triton\n  blocks: [mine]\n  remove:\n    kernel: {names: [tl.erf, tl.math.erf]}\n"
    (tmp_path / "orion.yaml").write_text(PLATFORM + blocks)
    (tmp_path / "mine").mkdir()
    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef tl_erf(x):\n    return x * 0\n"
    (tmp_path / "mine" / "language.py").write_text(text)
    (tmp_path / "model.py").write_text(
        "import torch\n\ndef make(device):\n"
        "    model, batch = torch.nn.GELU(), torch.tensor([2.0, 4.0], device=device)\n"
        "    scale = torch.nn.Parameter(torch.ones(2, device=device))\n"
        "    model.register_parameter('scale', scale)\n"
        "    loss = lambda model, x: model(x * model.scale).sum()\n"
        "    return model, batch, loss, torch.optim.SGD(model.parameters(), 0.1)\n"
    )
    result = program(tmp_path, "run", "model:make", "--device", "orion", "--unverified", "--steps", "1", "--compare")
    assert result.returncode == 1, result.stderr
    assert re.search(r"^ +1 +3 ", result.stdout, re.MULTILINE), result.stdout + result.stderr


def program(directory, *words):
    environment = {**os.environ, "PYTHONPATH": PATHS}
    command = [sys.executable, "-W", "ignore", "-m", "enable", *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def process(directory, device, *topics):
    (directory / "orion.yaml").write_text(PLATFORM)
    environment = {**os.environ, "PYTHONPATH": PATHS, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-W", "ignore", __file__, device, *topics]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def training(device, steps):
    """nanoGPT with AdamW, and DLRM with its sparse gradients, have the losses of the CPU."""
    for model, settings, optimizer in (("nanogpt", NANOGPT, "adamw-fused"), ("dlrm", DLRM, None)):
        recipe = Recipe(model, settings, batch=4, optimizer=optimizer)
        with enablekit.use(device, unverified=True) as registration:  # before the first backward pass of the process
            losses = [step.loss for step in train(recipe.build(device), int(steps))]
        expected = [step.loss for step in train(recipe.build("cpu"), int(steps))]
        assert registration.counts.served.total() > 100
        torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-4, atol=1e-4)
        assert len(losses) < 20 or losses[-1] < losses[0]  # the first few steps have different batches


def programs(device):
    """Data loaders, generators, autocast, a checkpoint, torch.accelerator and printing."""
    with enablekit.use(device, unverified=True):
        data = TensorDataset(torch.arange(12.0).view(6, 2))
        batches = [batch.to(device, non_blocking=True) for (batch,) in DataLoader(data, 3, pin_memory=True)]
        assert [batch.device.type for batch in batches] == [device] * 2

        generator = torch.Generator(device=device).manual_seed(3)
        state, first = generator.get_state(), torch.randn(5, device=device, generator=generator)
        generator.set_state(state)
        assert first.tolist() == torch.randn(5, device=device, generator=generator).tolist()

        model = nn.Sequential(nn.Linear(2, 4), nn.GELU(), nn.Dropout(0.5), nn.Linear(4, 1)).to(device)
        optimizer = torch.optim.AdamW(model.parameters())
        with torch.autocast(device, dtype=torch.bfloat16):
            output = model(batches[0])
        assert output.dtype is torch.bfloat16
        F.mse_loss(output.float(), batches[0][:, :1]).backward()
        optimizer.step()

        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
        saved = torch.load("checkpoint.pt")
        assert saved["model"]["0.weight"].device.type == device
        again = nn.Sequential(nn.Linear(2, 4), nn.GELU(), nn.Dropout(0.5), nn.Linear(4, 1)).to(device)
        again.load_state_dict(saved["model"])
        torch.optim.AdamW(again.parameters()).load_state_dict(saved["optimizer"])
        model.eval(), again.eval()
        assert model(batches[1]).tolist() == again(batches[1]).tolist()
        on_host = torch.load("checkpoint.pt", map_location="cpu")["model"]["0.weight"]
        assert on_host.device.type == "cpu" and on_host.tolist() == saved["model"]["0.weight"].tolist()

        for reentrant in (False, True):  # the second forward pass draws the masks of the first one
            x = torch.ones(64, device=device, requires_grad=True)
            y = checkpoint(nn.Dropout(0.5), x, use_reentrant=reentrant)
            y.sum().backward()
            assert 0 in y.tolist() and x.grad.tolist() == y.tolist()

        assert torch.accelerator.current_accelerator().type == device
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()
        assert torch.accelerator.memory_allocated() >= 0
        assert f"device='{device}:0'" in repr(first)
        with pytest.raises(NotImplementedError, match=r"aten::fake_quantize_per_tensor.* has no kernel for it"):
            torch.fake_quantize_per_tensor_affine(first, 0.1, 0, -5, 5)


def compiled(device):
    """The graphs of torch.compile run on the library's kernels, forward and backward."""
    model, x = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), torch.randn(5, 8)
    with enablekit.use(device, unverified=True):
        model = model.to(device)
        result = torch.compile(model, backend="enablekit", options={"unverified": True})(x.to(device))
        result.sum().backward()
    assert result.device.type == device
    gradient = model[0].weight.grad.cpu()
    model = model.cpu()
    model.zero_grad()
    expected = model(x)
    expected.sum().backward()
    torch.testing.assert_close(result.detach().cpu(), expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, model[0].weight.grad, rtol=1e-5, atol=1e-5)


def devices(device):
    """Both devices train; tied parameters stay tied, also when a module moves from one device to the other."""
    with enablekit.use("./orion.yaml", unverified=True):
        model = nn.ModuleList([nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)])
        model[1].weight = model[0].weight
        gradients = []
        for index in (0, 1):
            model.to(f"{device}:{index}")
            assert model[1].weight is model[0].weight
            model.zero_grad()
            tokens = torch.tensor([1, 2, 2]).to(f"{device}:{index}")
            F.cross_entropy(model[1](model[0](tokens)), tokens).backward()
            assert model[0].weight.grad.device == torch.device(device, index)
            gradients.append(model[0].weight.grad.tolist())
        assert gradients[0] == gradients[1]


def lazy(device):
    """Lazy modules take their sizes from the first input, and train."""
    with enablekit.use(device, unverified=True):
        model = nn.Sequential(nn.LazyLinear(5), nn.GELU(), nn.LazyLinear(2, device=device)).to(device)
        model(torch.randn(4, 3).to(device)).sum().backward()
    assert [tuple(p.shape) for p in model.parameters()] == [(5, 3), (5,), (2, 5), (2,)]
    assert all(p.grad.device.type == device for p in model.parameters())


def fallback(device):
    """What has no kernel is computed on the CPU, backward included, and in place; only inside the registration."""
    x = torch.randn(6)
    with enablekit.use(device, unverified=True, fallback="cpu") as registration:
        on_chip = x.to(device).requires_grad_()
        quantized = torch.fake_quantize_per_tensor_affine(on_chip, 0.1, 0, -5, 5)
        quantized.sum().backward()
        rows = torch.unique_consecutive(x.view(3, 2).to(device), dim=0)
        table = torch.full((3, 2), 4.0, device=device)
        F.embedding(torch.tensor([0, 2], device=device), table, max_norm=1.0)  # rescales rows in place
        target = torch.zeros(3, device=device)
        target.index_fill_(0, torch.tensor([1], device=device), 5.0)
    assert rows.device.type == quantized.device.type == device and target.tolist() == [0, 5, 0]
    assert rows.tolist() == x.view(3, 2).tolist()
    torch.testing.assert_close(table.cpu()[:, 0], torch.tensor([0.5**0.5, 4.0, 0.5**0.5]), rtol=1e-4, atol=0)
    expected = x.clone().requires_grad_()
    torch.fake_quantize_per_tensor_affine(expected, 0.1, 0, -5, 5).sum().backward()
    assert on_chip.grad.tolist() == expected.grad.tolist()
    assert registration.counts.served
    with pytest.raises(NotImplementedError):
        torch.unique_consecutive(rows, dim=0)


if __name__ == "__main__":
    _, tested, *chosen = sys.argv
    for topic in chosen:
        name, *settings = topic.split(":")
        globals()[name](tested, *settings)
        sys.stdout.write(f"{topic} passed\n")
