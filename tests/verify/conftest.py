"""Kernels that try something, as candidates in real children of the sandbox."""

import textwrap
from dataclasses import asdict

import pytest
import torch

from traces.values import pack
from verify import platforms
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.platforms import EXECUTE
from verify.sandbox.children import Zygote

SECRET = "sk-secret-of-the-user"
MEMORY = 2 << 30


@pytest.fixture(scope="module")
def start():
    """A function that returns the one zygote of a mode and a sandbox."""
    started = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", SECRET)

        def get(sandbox, mode=EXECUTE):
            if (mode, sandbox) not in started:
                started[mode, sandbox] = Zygote(mode, sandbox)
            return started[mode, sandbox]

        yield get
    for each in started.values():
        each.close()


@pytest.fixture
def outside(tmp_path):
    """A user's directory, with a secret in it."""
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path


def candidate_of(body):
    """The smoke kernel, whose wrapper first does `body`; its result or its error goes into the answer."""
    attempt = "def attempt():\n" + textwrap.indent(textwrap.dedent(body), "    ")
    modules = "import ctypes, errno, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time\n"
    wrapper = textwrap.dedent("""
    def wrapper(self):
        try:
            told = attempt()
        except (OSError, MemoryError, RuntimeError) as error:
            told = f"denied: {type(error).__name__} {error}"
        raise ValueError(f"probe: {told}")
    """)
    return modules + KERNEL[: KERNEL.index("def wrapper")] + attempt + wrapper


def job_of_source(source, memory_bytes=MEMORY):
    plan = Plan("aten::neg", "aten::neg")
    targets = [asdict(t) for t in platforms.load("sim").targets]
    sources = {"kernel": source}
    return {
        "plan": asdict(plan),
        "sources": sources,
        "takes_out": False,
        "targets": targets,
        "memory_bytes": memory_bytes,
    }


def answer_of(zygote, source, seconds=20.0):
    """The reply of a fresh child to one case. Raises ChildDied."""
    with zygote.fork(job_of_source(source)) as child:
        return child.ask(pack({"self": torch.arange(100.0)}), seconds)[0]


def probe_of(zygote, body, seconds=20.0):
    """What a probe returned or met, as text. Raises ChildDied."""
    text = answer_of(zygote, candidate_of(body), seconds)["text"]
    assert text.startswith("ValueError: probe: "), text
    return text.split("\n")[0].removeprefix("ValueError: probe: ")


def assert_works_of(zygote):
    assert answer_of(zygote, KERNEL)["status"] == "ok"


@pytest.fixture
def answer():
    return answer_of


@pytest.fixture
def probe():
    return probe_of


@pytest.fixture
def assert_works():
    return assert_works_of


@pytest.fixture
def job_of():
    return job_of_source


@pytest.fixture
def candidate():
    return candidate_of
