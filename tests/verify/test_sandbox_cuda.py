"""The sandbox's CUDA profile, on a machine that has a GPU: pytest -m gpu tests/verify/test_sandbox_cuda.py"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from verify.sandbox import confine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.skipif(bool(confine.missing()), reason="this machine has no Landlock or no seccomp"),
]

# As a child of mode `device` does it: descriptors closed, CUDA, a launch, then the lock, then the kernel.
CHILD = """
import json, os, sys, tempfile, time
from pathlib import Path
import torch
from verify import platforms
from verify.sandbox import confine
from verify.child.loading import load_wrappers
from verify.child.probe import KERNEL

canary, source, out = Path(sys.argv[1]), sys.argv[2], os.dup(1)
work = Path(tempfile.mkdtemp())
started = time.monotonic()
profile = platforms.load("cuda")  # asking the driver for its devices now would open descriptors
device = platforms.Device("cuda:0", profile.device_files, profile.system_files, profile.environment)
confine.isolate(work, [out], device=device)
torch.cuda.init()
x = torch.arange(1000.0, device="cuda")
load_wrappers({"kernel": KERNEL}, work)["kernel"](x).cpu()
ready = time.monotonic() - started
confine.limit(None)
confine.confine(confine.PROFILES["device"], work, device=device)
said = {"denied": confine.observed(canary, None), "ready": ready}
try:
    said["result"] = load_wrappers({"kernel": source}, work)["kernel"](x).sum().item()
except Exception as error:
    said["error"] = f"{type(error).__name__}: {error}"[:2000]
os.write(out, json.dumps(said).encode())
os._exit(0)
"""

GOOD = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, scale, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * scale + shift, mask=i < n)

def wrapper(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), 2.0, 1, BLOCK=128)
    return out
"""
WILD = GOOD.replace("tl.store(out_ptr + i,", "tl.store(out_ptr + i + (1 << 40),")
READS = GOOD.replace("def wrapper(x):\n", "def wrapper(x):\n    open('/etc/passwd').read()\n")


def ask(source, tmp_path):
    canary = tmp_path / "canary"
    canary.write_text("untouched")
    command = [sys.executable, "-c", CHILD, str(canary), source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert canary.read_text() == "untouched" and not canary.with_name("created").exists()
    return json.loads(done.stdout) if done.stdout else {"died": done.returncode, "stderr": done.stderr}


def test_a_kernel_compiles_and_runs_confined(tmp_path):
    said = ask(GOOD, tmp_path)
    assert confine.PROFILES["device"].denied <= set(said.get("denied", ())), said
    assert said.get("result") == 1000 * 999 + 1000, said


def test_files_are_closed_to_it(tmp_path):
    assert "PermissionError" in ask(READS, tmp_path).get("error", "")


def test_an_illegal_access_ends_one_child(tmp_path):
    assert "result" in ask(GOOD, tmp_path)
    said = ask(WILD, tmp_path)
    assert "died" in said or "illegal memory access" in said["error"], said
    assert "result" in ask(GOOD, tmp_path)
