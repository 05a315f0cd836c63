"""Build and install the seccomp filter that denies system calls to a child; standard library only.

The filter is a deny-list and not an allow-list. The system calls of torch, LLVM and the C library differ between
machines, and an honest kernel must not fail for that reason.
Calls that are newer than the list answer ENOSYS, which the C library treats as an older Linux kernel. The x32
call numbers are larger still, so they get the same answer.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import termios
from collections.abc import Iterable, Iterator

# Each entry has the name, the number on x86-64 and the number on aarch64 ("-" if the call does not exist), from
# asm/unistd_64.h and asm-generic/unistd.h of Linux 6.1.
_TABLE = """
# sockets: none is opened; descriptors are neither sent nor received
socket 41 198, socketpair 53 199, connect 42 203, bind 49 200, listen 50 201, accept 43 202, accept4 288 242
sendmsg 46 211, sendmmsg 307 269, recvmsg 47 212, recvmmsg 299 243
# processes, sessions and programs
fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, setsid 112 157, setpgid 109 154
# other processes: their memory, descriptors, signals and scheduling
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440
process_mrelease 448 448, kcmp 312 272, pidfd_open 434 434, pidfd_getfd 438 438, pidfd_send_signal 424 424
tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, sched_setaffinity 203 122
sched_setscheduler 144 119, sched_setparam 142 118, sched_setattr 314 274, setpriority 141 140
ioprio_set 251 30, migrate_pages 256 238, move_pages 279 239
# limits that hold this process
setrlimit 160 164, seccomp 317 277
# what Landlock leaves open: modes, owners, times and attributes of any file, files by handle
chmod 90 -, fchmod 91 52, fchmodat 268 53, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, utime 132 -
utimes 235 -, futimesat 261 -, utimensat 280 88, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, name_to_handle_at 303 264
open_by_handle_at 304 265, fanotify_init 300 262, fanotify_mark 301 263
# what other processes do with files; where this one is; all disks at once
inotify_init 253 -, inotify_init1 294 26, inotify_add_watch 254 27, chdir 80 49, fchdir 81 50, sync 162 81
syncfs 306 267
# memory that no limit counts
shmget 29 194, shmat 30 196, shmctl 31 195, shmdt 67 197, msgget 68 186, msgsnd 69 189, msgrcv 70 188
msgctl 71 187, semget 64 190, semop 65 193, semtimedop 220 192, semctl 66 191, mq_open 240 180
mq_unlink 241 181, memfd_create 319 279, memfd_secret 447 447
# namespaces and mounts
unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51
move_mount 429 429, open_tree 428 428, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433
mount_setattr 442 442, swapon 167 224, swapoff 168 225
# the kernel's large and old surfaces
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, io_setup 206 0, io_submit 209 2
io_destroy 207 1, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, keyctl 250 219, add_key 248 217
request_key 249 218, kexec_load 246 104, kexec_file_load 320 294, init_module 175 105, finit_module 313 273
delete_module 176 106, reboot 169 142, acct 163 89, quotactl 179 60, quotactl_fd 443 443, syslog 103 116
settimeofday 164 170, clock_settime 227 112, adjtimex 159 171, clock_adjtime 305 266, sethostname 170 161
setdomainname 171 162, iopl 172 -, ioperm 173 -, modify_ldt 154 -, personality 135 92, vhangup 153 58
nfsservctl 180 42, lookup_dcookie 212 18, uselib 134 -, ustat 136 -, sysfs 139 -, _sysctl 156 -
create_module 174 -, get_kernel_syms 177 -, query_module 178 -
# looked at further: see `_CONDITIONS`
clone 56 220, clone3 435 435, kill 62 129, tgkill 234 131, prlimit64 302 261, fcntl 72 25, ioctl 16 29
prctl 157 167
"""
_NEWEST = 450  # set_mempolicy_home_node, the last call of Linux 6.1

_ARCHITECTURES = {"x86_64": (0xC000003E, 1), "aarch64": (0xC00000B7, 2)}  # AUDIT_ARCH of linux/audit.h, column
_CONDITIONS = ("clone", "clone3", "kill", "tgkill", "prlimit64", "fcntl", "ioctl", "prctl")
_COMPILERS = ("vfork", "execve")  # needed to start a compiler; Landlock's EXECUTE right restricts which one
_DEVICES = ("socket", "socketpair", "sendmsg", "recvmsg", "memfd_create")  # a GPU driver needs these

_CLONE_VM_VFORK, _CLONE_THREAD = 0x4100, 0x10000  # linux/sched.h
_AF_UNIX = 1
_FCNTL = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX (signals to others), F_SETLEASE, F_NOTIFY
_IOCTL = (0x8901, 0x8902, termios.TIOCSTI, termios.TIOCLINUX)  # FIOSETOWN, SIOCSPGRP; input to a terminal
# PR_SET_PDEATHSIG, _DUMPABLE, _SECCOMP, _SECUREBITS, _MM, _CHILD_SUBREAPER, _PTRACER of linux/prctl.h
_PRCTL = (1, 4, 22, 28, 35, 36, 0x59616D61)

# linux/bpf_common.h, linux/filter.h, linux/seccomp.h
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_SET_MODE_FILTER, _GET_ACTION_AVAIL, _TSYNC = 1, 2, 1
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def available() -> bool:
    """Return True if this Linux kernel supports seccomp filters and the machine's call numbers are known."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    action = ctypes.c_uint32(_ERRNO)
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(_SYS_SECCOMP[machine], _GET_ACTION_AVAIL, 0, ctypes.byref(action)) == 0)


def install(program: Iterable[Instruction]) -> None:
    """Install a filter on every thread of this process and on all its descendants; raise OSError on failure."""
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))  # struct sock_fprog
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SYS_SECCOMP[platform.machine()], _SET_MODE_FILTER, _TSYNC, header) != 0:
        raise OSError(ctypes.get_errno(), "seccomp refused the filter")


def program(pid: int, compilers: bool, devices: bool) -> list[Instruction]:
    """Build the filter for process `pid`.

    Args:
        pid: The only process that the child may signal.
        compilers: True if the child may start programs; Landlock restricts which ones.
        devices: True if the child uses a GPU, whose driver starts threads.

    Returns:
        BPF instructions that check the architecture, then the call number, then the arguments of some calls.
    """
    architecture, column = _ARCHITECTURES[platform.machine()]
    numbers = _numbers(column)
    excepted = {*_CONDITIONS, *(_COMPILERS if compilers else ()), *(_DEVICES if devices else ())}
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        _refuse(errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _NEWEST),
        _refuse(errno.ENOSYS),
        # its flags are in memory, which BPF cannot read; the C library then falls back to clone
        *_when(numbers["clone3"], [_refuse(errno.ENOSYS)]),
        *_when(numbers["clone"], _clone(compilers, devices)),
        *_when(numbers["kill"], _only(0, (pid,))),
        *_when(numbers["tgkill"], _only(0, (pid,))),
        *_when(numbers["prlimit64"], [_argument(2), (_EQUAL, 0, 2, 0), _argument(2, 4), (_EQUAL, 1, 0, 0), _EPERM]),
        *_when(numbers["fcntl"], _never(1, _FCNTL)),
        *_when(numbers["ioctl"], _never(1, _IOCTL)),
        *_when(numbers["prctl"], _never(0, _PRCTL)),
        *(_when(numbers["socket"], _only(0, (_AF_UNIX,))) if devices else ()),
        *(i for name, number in numbers.items() if name not in excepted for i in _when(number, [_EPERM])),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse(code: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


_EPERM = _refuse(errno.EPERM)


def _numbers(column: int) -> dict[str, int]:
    """Return the call numbers of this architecture by name, in the order of the table."""
    lines = [line for line in _TABLE.strip().split("\n") if not line.startswith("#")]
    rows = [entry.split() for line in lines for entry in line.split(", ")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def _when(number: int, body: list[Instruction]) -> Iterator[Instruction]:
    """Yield instructions that run `body` for one call number; a body that does not return allows the call."""
    ends = body[-1][0] == _RETURN and len(body) == 1
    yield (_EQUAL, 0, len(body) + (0 if ends else 1), number)
    yield from body
    if not ends:
        yield (_RETURN, 0, 0, _ALLOW)


def _argument(index: int, half: int = 0) -> Instruction:
    """Load the lower half of an argument, or the upper if `half` is 4; both architectures are little-endian."""
    return (_LOAD, 0, 0, 16 + 8 * index + half)


def _only(index: int, values: tuple[int, ...]) -> list[Instruction]:
    """Return instructions that refuse the call unless the argument is one of `values`."""
    # If equal, jump over the remaining tests and the refusal.
    tests = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [_argument(index), *tests, _EPERM]


def _never(index: int, values: tuple[int, ...]) -> list[Instruction]:
    """Return instructions that refuse the call if the argument is one of `values`."""
    # If equal, jump to the refusal. The last test jumps over it if not equal.
    tests = [(_EQUAL, len(values) - 1 - i, int(i == len(values) - 1), value) for i, value in enumerate(values)]
    return [_argument(index), *tests, _EPERM]


def _clone(compilers: bool, threads: bool) -> list[Instruction]:
    """Return the instructions for `clone`.

    Threads are allowed if `threads` is set. With `compilers`, the form that posix_spawn uses is allowed too: the
    child borrows the memory until it executes a program.
    """
    spawn = (
        [(_AND, 0, 0, _CLONE_VM_VFORK | _CLONE_THREAD), (_EQUAL, 1, 0, _CLONE_VM_VFORK), _EPERM]
        if compilers
        else [_EPERM]
    )
    return [_argument(0), *([(_ANY_BIT, len(spawn), 0, _CLONE_THREAD)] if threads else []), *spawn]
