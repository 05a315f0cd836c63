"""The sandbox by its effects: hostile probes run as kernels in real children, and are seen to fail.

A probe is the body of a function in a kernel file. What it returns or the error it meets comes back in the child's
answer; what it did to the machine is looked at from here. The probes that leave no harm are run with the sandbox off
as well, where they must work.
"""

import os
import socket
import subprocess
from pathlib import Path

import pytest

SECRET = "sk-secret-of-the-user"


@pytest.fixture
def addresses(outside):
    """Ports and sockets that listen here."""
    listeners = {"tcp": socket.socket(), "udp": socket.socket(type=socket.SOCK_DGRAM)}
    for listener in listeners.values():
        listener.bind(("127.0.0.1", 0))
    listeners["abstract"] = socket.socket(socket.AF_UNIX)
    listeners["abstract"].bind(f"\0enable-{os.getpid()}")
    listeners["unix"] = socket.socket(socket.AF_UNIX)
    listeners["unix"].bind(str(outside / "s"))
    for name in ("tcp", "abstract", "unix"):
        listeners[name].listen()
    yield {name: listener.getsockname() for name, listener in listeners.items()}
    for listener in listeners.values():
        listener.close()


HARMLESS = {  # where the sandbox is off these work
    "read a secret": "return open({secret!r}).read()",
    "list a directory": "return os.listdir({outside!r})",
    "write": "open({secret!r}, 'w').write('gone')",
    "append": "open({secret!r}, 'a').write('gone')",
    "truncate": "os.truncate({secret!r}, 0)",
    "create": "open({outside!r} + '/new', 'w')",
    "delete": "os.remove({secret!r})",
    "rename": "os.rename({secret!r}, {outside!r} + '/moved')",
    "move here": "os.rename({secret!r}, 'mine')",
    "make a directory": "os.mkdir({outside!r} + '/new')",
    "symlink outside": "os.symlink('/etc/passwd', {outside!r} + '/new')",
    "symlink here": "os.symlink({secret!r}, 'link')",
    "hardlink": "os.link({secret!r}, 'link'); return open('link').read()",
    "write through a link of /proc": "open('/proc/self/root' + {secret!r}, 'w').write('gone')",
    "change a mode": "os.chmod({secret!r}, 0o777)",
    "change times": "os.utime({secret!r}, (0, 0))",
    "set an attribute": "os.setxattr({secret!r}, 'user.a', b'b')",
    "fifo": "os.mkfifo('fifo')",
    "environment of the parent": "return open(f'/proc/{{os.getppid()}}/environ').read()",
    "command lines of others": "return open('/proc/1/cmdline').read()",
    "signal the parent": "os.kill(os.getppid(), 0)",
    "tcp": "socket.create_connection({tcp!r})",
    "tcp to listen": "socket.create_server(('127.0.0.1', 0))",
    "udp": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', {udp!r})",
    "abstract socket": "socket.socket(socket.AF_UNIX).connect({abstract!r})",
    "unix socket": "socket.socket(socket.AF_UNIX).connect({unix!r})",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "socket pair": "socket.socketpair()",
    "fork": "os.fork() or os._exit(0)",
    "posix_spawn": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {{}}), 0)",
    "subprocess": "subprocess.run(['/bin/true'], check=True)",
    "os.system": "return 'denied: ' if os.system('exit 7') != 7 << 8 else 7",
    "execute": "os.execv('/bin/cat', ['cat', '/nonexistent'])",
    "lower the limits of the parent": "resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))",
    "priority of the parent": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 1)",
    "memory file": "os.memfd_create('x')",
    "thread": "threading.Thread(target=print).start()",
    "another directory": "os.chdir('/')",
}
CALLS = {  # system calls by number, as x86-64 has them: refused before the arguments are looked at
    "ptrace": "101, 16, os.getppid(), 0, 0",
    "process_vm_writev": "311, os.getppid(), 0, 0, 0, 0, 0",
    "unshare": "272, 0x10000000",
    "setns": "308, 0, 0",
    "mount": "165, b'none', b'/', b'tmpfs', 0, 0",
    "io_uring_setup": "425, 1, ctypes.create_string_buffer(120)",
    "bpf": "321, 0, 0, 0",
    "perf_event_open": "298, ctypes.create_string_buffer(120), 0, -1, -1, 0",
    "keyctl": "250, 0, -3, 0",
    "shmget": "29, 0, 4096, 0o1600",
    "userfaultfd": "323, 0",
    "pidfd_open": "434, os.getppid(), 0",
    "setrlimit": "160, 0, b' ' * 16",
    "dumpable again": "157, 4, 1, 0, 0, 0",
    "outlive the parent": "157, 1, 0, 0, 0, 0",
    "open_by_handle_at": "304, -100, 0, 0",
    "another session": "112",
    "inotify_init1": "294, 0",
    "sync": "162",
    "syncfs": "306, 2",
}


def places(outside, addresses=None):
    return {"outside": str(outside), "secret": str(outside / "secret"), **(addresses or {})}


def state(directory):
    """Everything of a directory that a probe might have changed."""
    return {
        p.name: (
            p.lstat().st_mode,
            p.lstat().st_mtime_ns,
            os.listxattr(p, follow_symlinks=False),
            p.is_file() and p.read_bytes(),
        )
        for p in directory.iterdir()
    }


@pytest.mark.parametrize("name", HARMLESS)
def test_blocked(start, outside, addresses, name, probe):
    before, limits, nice = state(outside), resource_limits(), os.getpriority(os.PRIO_PROCESS, 0)
    told = probe(start("full"), HARMLESS[name].format(**places(outside, addresses)))
    assert told.startswith("denied: ") and SECRET not in told
    assert state(outside) == before and resource_limits() == limits
    assert os.getpriority(os.PRIO_PROCESS, 0) == nice


def resource_limits():
    return Path("/proc/self/limits").read_text()


@pytest.mark.parametrize(
    "name", sorted(set(HARMLESS) - {"execute", "lower the limits of the parent", "set an attribute", "netlink"})
)
def test_not_blocked_without(start, outside, addresses, name, probe):
    assert not probe(start("none"), HARMLESS[name].format(**places(outside, addresses))).startswith("denied: ")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="these numbers are of x86-64")
@pytest.mark.parametrize("name", CALLS)
def test_system_call_refused(start, name, probe):
    call = f"""
        libc = ctypes.CDLL(None, use_errno=True)
        return libc.syscall({CALLS[name]}), errno.errorcode.get(ctypes.get_errno())
    """
    assert probe(start("full"), call) == "(-1, 'EPERM')"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code of x86-64")
def test_foreign_and_newer_system_calls(start, probe):
    body = """
        libc = ctypes.CDLL(None, use_errno=True)
        told = []
        for number in (0x40000000 + 39, 452, 5000):  # getpid of x32, fchmodat2, one that is not there yet
            told.append((libc.syscall(number), errno.errorcode.get(ctypes.get_errno())))
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid of i386); int 0x80; ret
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        told.append(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
        return told
    """
    assert probe(start("full"), body) == "[(-1, 'ENOSYS'), (-1, 'ENOSYS'), (-1, 'ENOSYS'), -1]"
    assert probe(start("none"), body).endswith("'ENOSYS'), -1]") is False


def test_memory_of_the_parent(start, probe):
    body = "open(f'/proc/{os.getppid()}/mem', 'r+b')"
    assert probe(start("full"), body).startswith("denied: PermissionError")


def test_processes_that_are_not_its_own(start, probe):
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        for body in (f"os.kill({sleeper.pid}, 9)", f"open('/proc/{sleeper.pid}/environ')", "os.kill(-1, 9)"):
            assert probe(start("full"), body).startswith("denied: PermissionError"), body
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_what_it_may(start, probe, assert_works):
    body = """
        open("mine", "w").write("x")
        os.mkdir("d"); os.rename("mine", "d/mine"); os.remove("d/mine"); os.rmdir("d")
        import decimal, xml.dom.minidom, torch.fft  # not imported before
        return os.environ["HOME"] == os.getcwd() == os.environ["TMPDIR"], len(open("/proc/self/stat").read()) > 0
    """
    told = probe(start("full"), body)
    assert told == "(True, True)", told
    assert_works(start("full"))


@pytest.mark.parametrize("sandbox", ["full", "none"])
def test_environment_and_descriptors(start, sandbox, probe):
    body = """
        libc = ctypes.CDLL(None)
        environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
        i, seen = 0, []
        while environ[i]:
            seen.append(environ[i].decode()); i += 1
        seen += [f"{k}={v}" for k, v in os.environ.items()] + open("/proc/self/environ").read().split(chr(0))
        links = [os.readlink(f"/proc/self/fd/{d}") for d in range(128) if os.path.lexists(f"/proc/self/fd/{d}")]
        return sorted({s.split("=")[0] for s in seen}), "sk-" in str(seen), sorted(l.split(":")[0] for l in links)
    """
    told = probe(start(sandbox), body)
    assert "'PATH'" in told and "KEY" not in told and "PROXY" not in told and "False" in told
    assert told.count("'socket'") == 1 and "pipe" not in told, told  # its job's, and no other
