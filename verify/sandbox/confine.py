"""What a child may do, taken away before it loads a kernel: Landlock, seccomp, limits. By ctypes alone.

`confine` is called in a child that has one thread and cannot be undone. `observed` then tries what must not work; its
answer, and not that something was called, is what the parent goes by. Landlock covers files, TCP, abstract sockets and
signals; seccomp (verify/sandbox/seccomp.py) the rest of the network, processes and the kernel; limits memory and disk.
Not held: a kernel that knows a hole of this Linux, or of a GPU's driver; what the child itself holds in memory.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from glob import glob
from pathlib import Path

from traces.errors import UserError
from traces.packaging import IMPORT_ROOT, ROOT
from verify.platforms import Device
from verify.sandbox import seccomp

FULL, NONE = "full", "none"  # the two sandboxes that can be asked for

FILE_BYTES = 64 << 20  # of one file
OPEN_FILES = 128
CPU_SECONDS = 4 * 3600  # of one child, all its cases; the parent's deadline comes first
# of the environment that the zygote was given
_KEPT = ("PATH", "OMP_NUM_THREADS", "TRITON_INTERPRET", "TRITON_DEFAULT_FP_FUSION")
_NEEDED = ("torch", "triton", "numpy")  # of packages, those that every child imports

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38  # linux/prctl.h

# linux/landlock.h; the three calls have these numbers on every architecture
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_OLDEST_ABI = 3  # Linux 6.2: truncating a file is covered
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << i for i in range(6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 7, 1 << 8, 1 << 13, 1 << 14, 1 << 15
_READ = _READ_FILE | _READ_DIR
_OWN = _READ | _WRITE_FILE | _TRUNCATE | _MAKE_REG | _MAKE_DIR | _REMOVE_FILE | _REMOVE_DIR | _REFER
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_GCC = ("cc1", "collect2", "as", "ld")  # what gcc starts
_CAP_DAC_READ_SEARCH = 2  # root reads what belongs to others; Landlock says which of it


@dataclass(frozen=True)
class Rights:
    """What one kind of child needs. compilers: it starts ptxas; devices: it uses a GPU, initialised before the lock."""

    compilers: bool = False
    devices: bool = False

    @property
    def denied(self) -> frozenset[str]:
        """What a child of this profile must have seen refused."""
        names = {"read", "write", "create", "chmod", "socket", "fork", "execute", "signal", "environment", "memory"}
        return frozenset(names - ({"memory"} if self.devices else set()))


# `device` compiles and executes in one process that has imported torch, initialised a GPU and built Triton's launcher
# before the lock, and after `isolate`, which would close the driver's descriptors; nothing can be forked after that.
PROFILES = {"execute": Rights(), "compile": Rights(compilers=True), "device": Rights(compilers=True, devices=True)}


@lru_cache(None)
def _landlock_abi() -> int:
    """The version of Landlock that this kernel has; 0: none."""
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def missing() -> list[str]:
    """What a sandbox needs and this machine lacks."""
    abi, lacks = _landlock_abi(), []
    if abi < _OLDEST_ABI:
        lacks.append(f"Landlock {_OLDEST_ABI} or later (this kernel has {abi or 'none'})")
    if not seccomp.available():
        lacks.append("seccomp filters")
    return lacks


def level(sandbox: str = FULL) -> str:
    """What holds a kernel here, in a few words that go into every verdict.

    Raises UserError if `sandbox` is neither `full` nor `none`, or `full` cannot be had.
    """
    if sandbox == NONE:
        return NONE
    if sandbox != FULL:
        raise UserError(f"unknown sandbox {sandbox!r}; choose from {FULL}, {NONE}")
    if lacks := missing():
        raise UserError(
            f"kernels cannot be confined on this machine, it lacks {' and '.join(lacks)}; judge elsewhere, "
            f"or only kernels that you trust, with --sandbox {NONE}"
        )
    return f"landlock {_landlock_abi()}, seccomp, rlimits"


def detach(parent: int) -> None:
    """A session of its own, which ends with the process that forked it. Raises SystemExit if that has ended already."""
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("orphaned")


def limit(memory_bytes: int | None) -> None:
    """Limits of this process. memory_bytes: address space beyond what is mapped now; None: as much as it likes."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_NOFILE: OPEN_FILES}
    if memory_bytes is not None:
        limits[resource.RLIMIT_AS] = _address_space() + memory_bytes
    for which, most in {**limits, resource.RLIMIT_CPU: CPU_SECONDS}.items():
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    Path("/proc/self/oom_score_adj").write_text("1000")


def isolate(work: Path, keep: Iterable[int], cache: Path | None = None, device: Device | None = None) -> None:
    """No descriptor but `keep`, /dev/null as the standard ones, none of the environment but what `device` needs, `work`
    as every directory but that of compiled kernels, if there is a `cache` for them."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    kept = sorted({0, 1, 2, *keep})
    for low, high in zip(kept, [*kept[1:], 1 << 20], strict=True):
        os.closerange(low + 1, high)
    names = (*_KEPT, *(device.environment if device else ()))
    values = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.clear()
    os.environ.update(values, HOME=str(work), TMPDIR=str(work), TRITON_CACHE_DIR=str(cache or work / "triton"))
    tempfile.tempdir = None
    os.chdir(work)


def confine(profile: Rights, work: Path, cache: Path | None = None, device: Device | None = None) -> None:
    """Take away everything else, for good. `work` and `cache`: the directories that stay writable.

    Raises OSError if the kernel refuses, RuntimeError if there are threads that Landlock would not cover.
    """
    if not profile.devices and len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("this process has other threads, which Landlock would not cover")
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _restrict([*_rules(profile, [work, *([cache] if cache else [])]), *_device_rules(device)])
    _drop_capabilities()
    seccomp.install(seccomp.program(os.getpid(), profile.compilers, profile.devices))


def observed(canary: Path, memory_bytes: int | None) -> list[str]:
    """What this process tries in vain. `canary`: a file outside the work directory; the parent looks at it too."""
    parent = os.getppid()
    attempts: dict[str, Callable[[], object]] = {
        "read": lambda: os.open(canary, os.O_RDONLY),
        "write": lambda: canary.write_text("overwritten"),
        "create": lambda: canary.with_name("created").touch(),
        "chmod": lambda: canary.chmod(0o777),
        "socket": lambda: _socket(),
        "fork": lambda: os.fork() or os._exit(0),
        "execute": lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),
        "signal": lambda: os.kill(parent, 0),
        "environment": lambda: os.open(f"/proc/{parent}/environ", os.O_RDONLY),
    }
    denied = [name for name, attempt in attempts.items() if _fails(attempt, PermissionError)]
    if memory_bytes is not None and _fails(lambda: mmap.mmap(-1, 2 * memory_bytes), OSError):
        denied.append("memory")
    return denied


def _socket() -> None:
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _fails(attempt: Callable[[], object], how: type[OSError]) -> bool:
    try:
        attempt()
    except how:
        return True
    except OSError:
        return False
    return False


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _address_space() -> int:
    """Bytes of address space that this process has mapped: 1 GiB with torch for the CPU, many with one for CUDA."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _drop_capabilities() -> None:
    """A root that is none: it neither raises its limits nor signals, traces or mounts."""
    header = struct.pack("@Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3 of linux/capability.h, this thread
    sets = ctypes.create_string_buffer(24)  # effective, permitted, inheritable; twice 32 bits
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capget(header, sets)
    effective, permitted, _, *_ = struct.unpack("@6I", sets)
    kept = 1 << _CAP_DAC_READ_SEARCH
    if libc.capset(header, struct.pack("@6I", effective & kept, permitted & kept, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _rules(profile: Rights, own: Iterable[Path]) -> list[tuple[str, int]]:
    """Paths and what may be done beneath them."""
    rules = [(f"/proc/{os.getpid()}", _READ), ("/dev/null", _READ_FILE | _WRITE_FILE)]
    rules += [(str(path), _OWN) for path in own]
    rules += [(path, _READ) for path in _readable()]
    if profile.compilers:
        rules += [(path, _EXECUTE | _READ) for path in _compilers(profile.devices)]
    return [(path, access) for path, access in rules if os.path.exists(path)]


def _device_rules(device: Device | None) -> list[tuple[str, int]]:
    """What a driver opens while kernels run."""
    if device is None:
        return []
    files = [path for pattern in device.files for path in glob(pattern) if not path.endswith("modeset")]
    rules = [(path, _DEVICE | (_READ_DIR if os.path.isdir(path) else 0)) for path in files]
    rules += [(f"/proc/{os.getpid()}/task", _READ | _WRITE_FILE)]  # the driver names its threads
    rules += [(path, _READ) for path in device.system_files]
    return [(path, access) for path, access in rules if os.path.exists(path)]


def package_directories() -> list[Path]:
    """Where Python looks for packages that were installed, with pip's `--target` too; no home, no working tree."""
    return [p for p in map(Path, sys.path) if p.is_absolute() and _holds_packages(p)]


def search_path() -> str:
    """The PYTHONPATH of a child with another home: this toolkit, and packages that Python does not find by itself."""
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    elsewhere = [str(p) for p in package_directories() if not any(p.is_relative_to(prefix) for prefix in own)]
    return os.pathsep.join([str(IMPORT_ROOT), *elsewhere])


def _holds_packages(directory: Path) -> bool:
    named = directory.name in ("site-packages", "dist-packages")
    return named or any(directory.glob("*.dist-info")) or any((directory / name).is_dir() for name in _NEEDED)


def _readable() -> list[str]:
    """Python, its packages, the toolkit's own, the system's libraries."""
    packages = map(str, package_directories())
    toolkit = [str(ROOT / name) for name in ("traces", "verify")]
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu"]
    machine = ["/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/dev/zero", "/dev/urandom", "/dev/random"]
    return [sys.prefix, sys.exec_prefix, sys.base_prefix, *packages, *toolkit, *system, *machine]


def _compilers(launchers: bool) -> list[str]:
    """Triton's ptxas and the loader that the kernel starts it with; for launchers also the C compiler's programs."""
    spec = importlib.util.find_spec("triton")
    roots = spec.submodule_search_locations or [] if spec else []
    binaries = [str(p) for root in roots for p in Path(root).glob("backends/*/bin/*")]
    compiler = shutil.which("gcc") if launchers else None  # Triton compiles a launcher for each signature
    if compiler is not None:
        asked = [subprocess.run([compiler, f"-print-prog-name={n}"], capture_output=True, text=True) for n in _GCC]
        found = [shutil.which(answer.stdout.strip()) for answer in asked]
        binaries += [os.path.realpath(path) for path in (compiler, *found) if path]
    return [*binaries, *(str(p) for lib in ("/lib", "/lib64") for p in Path(lib).glob("ld-linux*.so.*"))]


def _restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Landlock: of all this kernel covers, only `rules` stay allowed."""
    abi = _landlock_abi()
    files = (1 << (14 if abi < 3 else 15 if abi < 5 else 16)) - 1
    attributes = struct.pack("@QQQ", files, 0b11, 0b11)  # files; TCP bind, connect; abstract sockets, signals
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _landlock(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    for path, access in rules:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed = access & files & (-1 if os.path.isdir(path) else _OF_FILES)
        _landlock(_ADD_RULE, ruleset, 1, struct.pack("@Qi", allowed, descriptor), 0)
        os.close(descriptor)
    _landlock(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _landlock(number: int, *arguments: object) -> int:
    result = int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock call {number}")
    return result
