"""Bring up the device that a command names: PyTorch's own, `sim`, or that of a platform file."""

from __future__ import annotations

from enable.serve.backends import Backend, declare
from traces import UserError
from verify import platforms
from verify.platforms import Platform


def bring_up(device: str) -> Platform:
    """Return the platform of a device. For one of a platform file, import its module first and prepare to serve it.

    Args:
        device: A device type such as cuda, sim or mychip, or the path of a platform file.

    Raises:
        UserError: No platform is for the device, or its module does not provide it.
    """
    platform = platforms.load(device if platforms.is_file(device) else platforms.of_device(device))
    if platforms.is_file(platform.typed):
        if not platform.device or not platform.module:
            raise UserError(
                f"{platform.typed}: names no device; add the device type and the module that provides it, such as "
                "device: mychip and module: torch_mychip"
            )
        platform.bring_up()
        interpreted = platform.launcher == "interpreter"
        declare(platform.device, Backend(platform.dispatch_key, interpreted, dict(platform.targets[0].options)))
    return platform


def resolve(device: str) -> tuple[str, str]:
    """Return PyTorch's name for a device that a command names, and its platform file; empty for a device of PyTorch's.

    A chip is brought up. An index, as in mychip:1, stays.
    """
    kind, colon, index = device.partition(":")
    if kind in platforms.DEVICES:
        return device, ""
    platform = bring_up(kind)
    return (f"{platform.device}{colon}{index}", platform.typed) if is_chip(platform) else (device, "")


def is_chip(platform: Platform) -> bool:
    """Return True if a platform file describes the platform's device, which then has the library's kernels alone."""
    return bool(platform.module)
