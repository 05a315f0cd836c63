"""Platforms whose kernels run on a GPU. With one: pytest -m gpu tests/verify/test_platform_device.py"""

import dataclasses
from pathlib import Path

import pytest
import torch

from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job, Judge
from verify.judging.verdicts import VerdictStore
from verify.outcome import Outcome
from verify.sandbox import confine

STORE = "tl.store(out_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)"
WRONG = KERNEL.replace("-tl.load", "tl.load")
WILD = KERNEL.replace(STORE, "tl.store(out_ptr + i + (1 << 40), -tl.load(x_ptr + i, mask=i < n))")
HANGS = KERNEL.replace(STORE, f"while tl.atomic_add(x_ptr, 0.0) < 1e30:\n        {STORE}")
BESIDE = KERNEL.replace(STORE, f"{STORE}\n    tl.store(x_ptr - 1 - i * 0, 1.0)")
CONJURED = KERNEL.replace("    return out", "    return -self")


def test_devices_are_asked_for_by_name_and_refused_in_a_line():
    for name in platforms.names():
        platform = platforms.load(name)
        if not platform.device:
            assert platform.devices() == () and platform.mode == "execute"
        elif torch.accelerator.current_accelerator() is None:
            with pytest.raises(UserError, match=rf"platform {name}: .* --platform sim"):
                platform.devices()


def test_a_device_survives_the_way_to_a_child():
    device = platforms.Device("cuda:1", ("/dev/nvidia*",), ("/sys",), ("LD_LIBRARY_PATH",), "sm_90")
    assert platforms.Device.read(dataclasses.asdict(device)) == device


gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.skipif(bool(confine.missing()), reason="this machine has no Landlock or no seccomp"),
]


class TestOnAGpu:
    pytestmark = gpu

    @pytest.fixture
    def judge(self, tmp_path):
        platform = dataclasses.replace(platforms.load("cuda"), execute_seconds=15)
        with Judge(platform, VerdictStore(tmp_path / "v.sqlite"), workers=1, cache=tmp_path / "cache") as judge:

            def told(source, *cases):
                cases = cases or (case_of_values("aten::neg", self=torch.arange(1.0, 301.0)),)
                job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("k.py")), cases)
                return [v for (_, _), v in judge.judge([job]).items()]

            yield told

    def test_a_right_kernel_passes(self, judge):
        cases = [case_of_values("aten::neg", self=torch.arange(1.0, n + 1).view(-1, 1)[:, 0]) for n in (0, 1, 300)]
        assert [v.outcome for v in judge(KERNEL, *cases)] == [Outcome.PASS] * 3

    @pytest.mark.parametrize(
        ("source", "outcome"),
        [
            (WRONG, Outcome.WRONG),
            (BESIDE, Outcome.WRONG),
            (WILD, Outcome.CRASH),
            (HANGS, Outcome.TIMEOUT),
            (CONJURED, Outcome.CHEAT),
        ],
        ids=["wrong", "beside", "wild", "hangs", "conjured"],
    )
    def test_a_bad_kernel_is_refused_and_the_next_one_passes(self, judge, source, outcome):
        (verdict,) = judge(source)
        assert verdict.outcome is outcome, verdict
        (after,) = judge(KERNEL)
        assert after.outcome is Outcome.PASS, after

    def test_compiled_kernels_are_kept_by_source(self, judge, tmp_path):
        judge(KERNEL)
        (kept,) = (tmp_path / "cache").iterdir()
        assert list(kept.rglob("*.cubin"))

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one CUDA device")
    def test_each_of_several_devices_has_a_child_that_judges(self, tmp_path):
        devices = range(torch.cuda.device_count())
        free = [torch.cuda.mem_get_info(i)[0] for i in devices]
        taken = [0 for _ in devices]  # bytes, at most; a child's are free again when its job is done

        def look(job, verdict):
            for i in devices:
                taken[i] = max(taken[i], free[i] - torch.cuda.mem_get_info(i)[0])

        jobs = [
            Job(
                Plan("aten::neg", "aten::neg"),
                KernelFile.parse(KERNEL, Path("k.py")),
                tuple(case_of_values("aten::neg", self=torch.arange(1.0, n)) for n in range(first, first + 40)),
            )
            for first in range(100, 100 * (len(devices) + 1), 100)  # one job for each, that none waits for another
        ]
        store = VerdictStore(tmp_path / "v.sqlite")
        with Judge(platforms.load("cuda"), store, workers=len(devices), cache=tmp_path / "cache") as judge:
            assert {v.outcome for v in judge.judge(jobs, look).values()} == {Outcome.PASS}
        assert min(taken) > 100 << 20, taken  # a CUDA context takes more
