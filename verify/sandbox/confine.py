"""Confine a child before it loads a kernel, with Landlock, seccomp and resource limits, through ctypes alone.

`confine` is called in a child that has one thread, and it cannot be undone. Afterwards `observed` attempts
forbidden actions. The parent trusts the result of these attempts, not the fact that `confine` was called.
Landlock covers files, TCP, abstract sockets and signals. Seccomp (verify/sandbox/seccomp.py) covers the rest of
the network, processes and the kernel. Limits cover memory and disk.
Out of scope: a kernel that exploits a hole in this Linux or in a GPU driver, and the data in the child's own
memory.
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

FULL, NONE = "full", "none"  # the two sandboxes that a user can choose

FILE_BYTES = 64 << 20  # size limit for one file
OPEN_FILES = 128
CPU_SECONDS = 4 * 3600  # for one child with all its cases; the parent's deadline comes first
# Environment variables that a child inherits from its zygote.
_KEPT = ("PATH", "OMP_NUM_THREADS", "TRITON_INTERPRET", "TRITON_DEFAULT_FP_FUSION")
_NEEDED = ("torch", "triton", "numpy")  # packages that every child imports

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38  # linux/prctl.h

# linux/landlock.h; the three calls have these numbers on every architecture
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_OLDEST_ABI = 3  # Linux 6.2; older versions do not cover truncation
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << i for i in range(6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 7, 1 << 8, 1 << 13, 1 << 14, 1 << 15
_READ = _READ_FILE | _READ_DIR
_OWN = _READ | _WRITE_FILE | _TRUNCATE | _MAKE_REG | _MAKE_DIR | _REMOVE_FILE | _REMOVE_DIR | _REFER
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_GCC = ("cc1", "collect2", "as", "ld")  # programs that gcc starts
_CAP_DAC_READ_SEARCH = 2  # lets root read files that belong to others; Landlock restricts which ones


@dataclass(frozen=True)
class Rights:
    """Extra rights that one kind of child needs.

    Attributes:
        compilers: The child starts ptxas.
        devices: The child uses a GPU, which is initialised before confinement.
    """

    compilers: bool = False
    devices: bool = False

    @property
    def denied(self) -> frozenset[str]:
        """Return the names of the attempts that `observed` must report as denied in such a child."""
        names = {"read", "write", "create", "chmod", "socket", "fork", "execute", "signal", "environment", "memory"}
        return frozenset(names - ({"memory"} if self.devices else set()))


# A `device` child compiles and executes in one process. It imports torch, initialises the GPU and builds Triton's
# launcher before confinement, and after `isolate`, which would close the driver's descriptors. Nothing can be
# forked after that.
PROFILES = {"execute": Rights(), "compile": Rights(compilers=True), "device": Rights(compilers=True, devices=True)}


@lru_cache(None)
def _landlock_abi() -> int:
    """Return the Landlock ABI version of this Linux kernel, or 0 if it has none."""
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def missing() -> list[str]:
    """Return the features that a sandbox needs and this machine does not have."""
    abi, lacks = _landlock_abi(), []
    if abi < _OLDEST_ABI:
        lacks.append(f"Landlock {_OLDEST_ABI} or later (this kernel has {abi or 'none'})")
    if not seccomp.available():
        lacks.append("seccomp filters")
    return lacks


def level(sandbox: str = FULL) -> str:
    """Return a short description of the confinement, which is stored in every verdict.

    Raises:
        UserError: `sandbox` is neither `full` nor `none`, or `full` is not available.
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
    """Start a new session that ends with the parent process; raise SystemExit if the parent has already ended."""
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("orphaned")


def limit(memory_bytes: int | None) -> None:
    """Set the resource limits for this process.

    Args:
        memory_bytes: Address space beyond the bytes mapped now; None sets no limit.
    """
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_NOFILE: OPEN_FILES}
    if memory_bytes is not None:
        limits[resource.RLIMIT_AS] = _address_space() + memory_bytes
    for which, most in {**limits, resource.RLIMIT_CPU: CPU_SECONDS}.items():
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    Path("/proc/self/oom_score_adj").write_text("1000")


def isolate(work: Path, keep: Iterable[int], cache: Path | None = None, device: Device | None = None) -> None:
    """Close inherited descriptors, and reset the environment and the working directory.

    Descriptors 0, 1 and 2 become /dev/null. HOME, TMPDIR and the working directory become `work`.

    Args:
        work: Work directory.
        keep: Descriptors that stay open.
        cache: Directory for compiled Triton kernels; by default a folder inside `work`.
        device: Device whose environment variables are preserved.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    descriptors = sorted({0, 1, 2, *keep})
    for low, high in zip(descriptors, [*descriptors[1:], 1 << 20], strict=True):
        os.closerange(low + 1, high)
    names = (*_KEPT, *(device.environment if device else ()))
    values = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.clear()
    os.environ.update(values, HOME=str(work), TMPDIR=str(work), TRITON_CACHE_DIR=str(cache or work / "triton"))
    tempfile.tempdir = None
    os.chdir(work)


def confine(profile: Rights, work: Path, cache: Path | None = None, device: Device | None = None) -> None:
    """Drop all other rights permanently.

    Args:
        profile: Rights to preserve.
        work: Directory that stays writable.
        cache: Second directory that stays writable.
        device: Device whose files stay accessible.

    Raises:
        OSError: The Linux kernel refused a restriction.
        RuntimeError: The process has other threads, which Landlock would not cover.
    """
    if not profile.devices and len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("this process has other threads, which Landlock would not cover")
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _restrict([*_rules(profile, [work, *([cache] if cache else [])]), *_device_rules(device)])
    _drop_capabilities()
    seccomp.install(seccomp.program(os.getpid(), profile.compilers, profile.devices))


def observed(canary: Path, memory_bytes: int | None) -> list[str]:
    """Attempt forbidden actions and return the names of those that were denied.

    Args:
        canary: File outside the work directory, which the parent also inspects.
        memory_bytes: Memory limit; mapping twice as much has to fail. None skips this attempt.
    """
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


def _fails(attempt: Callable[[], object], error_type: type[OSError]) -> bool:
    try:
        attempt()
    except error_type:
        return True
    except OSError:
        return False
    return False


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _address_space() -> int:
    """Return the bytes of address space that are mapped: 1 GiB with torch for CPU, many GiB with CUDA."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _drop_capabilities() -> None:
    """Drop all capabilities except CAP_DAC_READ_SEARCH.

    Then even root cannot raise its limits, signal or trace other processes, or mount.
    """
    header = struct.pack("@Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3 of linux/capability.h, this thread
    sets = ctypes.create_string_buffer(24)  # effective, permitted, inheritable; each as two words with 32 bits
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capget(header, sets)
    effective, permitted, _, *_ = struct.unpack("@6I", sets)
    mask = 1 << _CAP_DAC_READ_SEARCH
    if libc.capset(header, struct.pack("@6I", effective & mask, permitted & mask, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _rules(profile: Rights, writable: Iterable[Path]) -> list[tuple[str, int]]:
    """Return pairs of a path and the Landlock access bits beneath it."""
    rules = [(f"/proc/{os.getpid()}", _READ), ("/dev/null", _READ_FILE | _WRITE_FILE)]
    rules += [(str(path), _OWN) for path in writable]
    rules += [(path, _READ) for path in _readable()]
    if profile.compilers:
        rules += [(path, _EXECUTE | _READ) for path in _compilers(profile.devices)]
    return [(path, access) for path, access in rules if os.path.exists(path)]


def _device_rules(device: Device | None) -> list[tuple[str, int]]:
    """Return the rules for the files that a driver opens while kernels run."""
    if device is None:
        return []
    files = [path for pattern in device.files for path in glob(pattern) if not path.endswith("modeset")]
    rules = [(path, _DEVICE | (_READ_DIR if os.path.isdir(path) else 0)) for path in files]
    rules += [(f"/proc/{os.getpid()}/task", _READ | _WRITE_FILE)]  # the driver sets the names of its threads
    rules += [(path, _READ) for path in device.system_files]
    return [(path, access) for path, access in rules if os.path.exists(path)]


def package_directories() -> list[Path]:
    """Return the directories on sys.path that hold installed packages, including those of pip's `--target`.

    Home directories and working trees are not included.
    """
    return [p for p in map(Path, sys.path) if p.is_absolute() and _holds_packages(p)]


def search_path() -> str:
    """Return the PYTHONPATH for a child with another home directory.

    It has this toolkit, and the packages that Python does not find by itself.
    """
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    elsewhere = [str(p) for p in package_directories() if not any(p.is_relative_to(prefix) for prefix in prefixes)]
    return os.pathsep.join([str(IMPORT_ROOT), *elsewhere])


def _holds_packages(directory: Path) -> bool:
    named = directory.name in ("site-packages", "dist-packages")
    return named or any(directory.glob("*.dist-info")) or any((directory / name).is_dir() for name in _NEEDED)


def _readable() -> list[str]:
    """Return the readable paths: Python, its packages, this toolkit, and system libraries."""
    packages = map(str, package_directories())
    toolkit = [str(ROOT / name) for name in ("traces", "verify")]
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu"]
    machine = ["/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/dev/zero", "/dev/urandom", "/dev/random"]
    return [sys.prefix, sys.exec_prefix, sys.base_prefix, *packages, *toolkit, *system, *machine]


def _compilers(launchers: bool) -> list[str]:
    """Return the executables that compilation starts.

    These are Triton's ptxas and the dynamic loader. With `launchers` they include the programs that the C
    compiler needs.
    """
    spec = importlib.util.find_spec("triton")
    roots = spec.submodule_search_locations or [] if spec else []
    binaries = [str(p) for root in roots for p in Path(root).glob("backends/*/bin/*")]
    compiler = shutil.which("gcc") if launchers else None  # Triton compiles a C launcher for each signature
    if compiler is not None:
        asked = [subprocess.run([compiler, f"-print-prog-name={n}"], capture_output=True, text=True) for n in _GCC]
        programs = [shutil.which(answer.stdout.strip()) for answer in asked]
        binaries += [os.path.realpath(path) for path in (compiler, *programs) if path]
    return [*binaries, *(str(p) for lib in ("/lib", "/lib64") for p in Path(lib).glob("ld-linux*.so.*"))]


def _restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Apply a Landlock ruleset that allows only `rules` among all accesses that this Linux kernel covers."""
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
