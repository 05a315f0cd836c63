"""Start pytest on TorchCTS, the suite in PyPI's package `torchcts`, as one worker among several."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from enable.conformance.options import CHECKS, SuiteOptions
from traces import UserError
from traces.packaging import qualified

REQUIREMENT = "torchcts==0.4.1"
INSTALL = f"pip install psutil && pip install --no-deps {REQUIREMENT}"  # --no-deps because it requires torch < 2.12.2
DESK = "ENABLE_CONFORMANCE_DESK"  # index and directory of the worker, for the plugin
CAPABILITIES = (
    *("inference", "training", "rng", "device_generator", "rng_distributions", "double_backward", "module_hooks"),
    *("gradient_checkpointing", "autocast", "fused_optimizer", "channels_last", "sparse", "foreach", "fp8"),
    *("deterministic", "ieee754"),
)
LEFT_OUT = (  # features that no kernel registration changes
    *("serialization", "gradcheck", "dataloader", "nested", "named_tensor", "quantized_container_plumbing", "compile"),
    *("native_quantization", "custom_quantized_decode", "pinned_memory", "streams", "events", "guard_alloc"),
    *("device_api", "multi_device"),
)
MANIFEST = """import torch

manifest = {{
    "manifest_version": 1, "device_name": {device!r}, "backend_import": None, "device_count": 1, "ieee754_seed": 67,
    "supported_dtypes": {{getattr(torch, name): True for name in {dtypes!r}}},
    "max_samples": {samples}, "max_samples_ieee754": 2, "semantic_level": 8,
    "hardware": {{"memory_model": "discrete", "device_memory_gb": [80], "system_memory_gb": 64,
                 "oom_recoverable": True}},
    "resource_limits": {{"max_device_memory_mb": 8192, "max_system_memory_mb": 8192, "max_tensor_size_mb": 1024,
                        "cleanup_threshold_pct": 80}},
    "capabilities": {{**dict.fromkeys({on!r}, True), **dict.fromkeys({off!r}, False)}},
    "skip_ops": [], "tolerance_overrides": {{}}, "supported_container_formats": {{}}, "custom_container_decoders": {{}},
    "custom_test_dirs": [],
}}
"""


def pytest_command(options: SuiteOptions) -> Callable[[Path, int], list[str]]:
    """Return a function that makes a worker's command.

    Raises:
        UserError: TorchCTS is missing or has another version.
    """
    spec = importlib.util.find_spec("torchcts")
    if spec is None or spec.submodule_search_locations is None:
        raise UserError(f"suite 'torchcts': TorchCTS is not installed; run: {INSTALL}")
    version = importlib.metadata.version("torchcts")
    if f"torchcts=={version}" != REQUIREMENT:
        raise UserError(f"suite 'torchcts': this is torchcts {version}; run: {INSTALL}")
    package = Path(spec.submodule_search_locations[0])

    def command(directory: Path, index: int) -> list[str]:
        manifest = MANIFEST.format(
            device=options.device, dtypes=options.dtype_names, samples=options.samples, on=CAPABILITIES, off=LEFT_OUT
        )
        (directory / "manifest.py").write_text(manifest)
        settings = {DESK: f"{index}:{directory}", "TORCHCTS_NON_INTERACTIVE": "1", "PYTEST_XDIST_WORKER": f"gw{index}"}
        settings["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        words = ["env", *(f"{name}={value}" for name, value in settings.items()), sys.executable, "-m", "pytest"]
        words += [
            "-q",
            "-q",
            "--tb=no",
            "-p",
            qualified("enable.conformance.torchcts_plugin"),
            "-p",
            "no:cacheprovider",
        ]
        words += ["-p", "no:warnings", "--continue-on-collection-errors", "--device", options.device, "--level", "8"]
        words += ["--known-segfault-policy", "off", "--adaptive-isolation", "off", "--non-interactive"]
        words += ["--results-dir", f"results-{index}", "--rootdir", str(package.parent)]
        return [*words, *(str(package / folder) for folder in options.checks or CHECKS["torchcts"])]

    return command
