"""Known bad kernels are rejected, for a reason that fits; unusual honest ones pass; nothing is left behind.

All of them: pytest -m "sweep or not sweep" tests/verify/test_corpus.py
"""

import os
import tempfile
from pathlib import Path

import pytest
from shared import sampled

from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier

CORPUS = Path(__file__).parent / "corpus"
BAD = sorted((CORPUS / "bad").glob("*.py"))
HONEST = sorted((CORPUS / "honest").glob("*.py"))
EVERY = 10  # `enable verify --report` judges all of them too
PUBLIC = "# public:"  # those that are judged here but for the slow
SLOW = ("bmm_batch_axis", "exp_python_chunk_loop")  # swept: half a minute each; a product and a loop stay
THOROUGH, QUICK = (
    VerifyRequest(seed=1),
    VerifyRequest(seed=1, limit=12),
)  # a bad kernel is judged until its first failure
CANARIES = Path(tempfile.gettempdir()) / "enable-canary"


@pytest.fixture(scope="module")
def verifier(tmp_path_factory):
    home = tmp_path_factory.mktemp("corpus")
    platform = home / "soon.yaml"
    platform.write_text(
        "base: sim\ncompile_seconds: 30\nexecute_seconds: 20\n"
    )  # what is endless is waited for so long
    before = Path.cwd()
    os.chdir(home)  # where canaries would be written
    try:
        with Verifier(home / ".enable", None, str(platform), "triton-cuda", "full") as found:
            yield found
    finally:
        os.chdir(before)


def header(path, name):
    lines = path.read_text().splitlines()[:12]
    found = [line.partition(":")[2] for line in lines if line.startswith(f"# {name}:")]
    return [word.strip() for word in found[0].replace(",", "|").split("|")] if found else []


def some(paths):
    """CI judges the files that are marked, and of the others every tenth."""
    marked = [path for path in paths if PUBLIC in path.read_text()]
    others = [path for path in paths if path not in marked]
    return sampled(paths, [p for p in marked + others[::EVERY] if p.stem not in SLOW])


def test_the_corpus_is_large_and_of_every_family():
    assert len(BAD) >= 80 and len(HONEST) >= 30
    families = {family[0] for path in BAD for family in header(path, "family")}
    assert families >= set("ABCDEFGHIJKLMNOPQRST")


@pytest.mark.parametrize("path", some(BAD), ids=lambda p: p.stem)
def test_a_bad_kernel_is_rejected(verifier, path):
    found = verifier.verify(str(path), None, THOROUGH)
    assert found.outcome not in ("PASS", "SKIPPED"), found
    expected = header(path, "outcome")
    assert not expected or found.outcome in expected or found.layer == "lint", found
    assert not list(Path.cwd().rglob("canary*")) and not CANARIES.exists()


@pytest.mark.parametrize("path", some(HONEST), ids=lambda p: p.stem)
def test_an_honest_kernel_passes(verifier, path):
    found = verifier.verify(str(path), None, QUICK)
    assert found.outcome == "PASS" and found.cases > 0, found
