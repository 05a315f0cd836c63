"""`enable capture opinfo` and `enable coverage opinfo` as a user types them, with few operators."""

import json

import pytest
from program import enable
from shared import without

from capture.opinfo import SampleRequest, record
from enable.cover import opinfo
from traces.store import Trace
from verify.outcome import Outcome, Verdict

CAPTURE = (
    "capture",
    "opinfo",
    "--op",
    "exp",
    "--op",
    "atleast_1d",
    "--op",
    "bernoulli",
    "--op",
    "sgn",
    "--op",
    "uniform",
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A workspace with a trace of a few operators in float32, and what was said of it; without sgn and bernoulli."""
    directory = tmp_path_factory.mktemp("opinfo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENABLE_LIBRARY", str(without(["aten::sgn", "aten::bernoulli"], directory / "library")))
        yield _recorded(directory)


def _recorded(directory):
    found = enable(*CAPTURE, "--dtype", "float32", "--json", cwd=directory)
    assert found.returncode == 0, found.stderr
    return directory, json.loads(found.stdout)


def test_samples_are_recorded_forward_and_backward(recorded):
    directory, said = recorded
    assert said["operators"] == 5 and said["samples"] >= 8 and said["backward"] >= 4
    assert said["overloads"]["forward"] >= 2 and said["overloads"]["backward_only"] >= 1
    trace = Trace.open(directory / ".enable" / "traces" / "opinfo.trace")
    groups = trace.manifest["info"]["opinfo"]["groups"]
    steps = sum(group["samples"] for group in groups)
    assert {record.step for record in trace.calls()} <= set(range(steps))
    exp = next(g for g in groups if g["operator"] == "exp")
    calls = [r for r in trace.calls() if exp["step"] <= r.step < exp["step"] + exp["samples"]]
    assert [r.overload for r in calls if r.phase == "forward" and r.kind == "compute"] == ["aten::exp"] * exp["samples"]
    assert {r.overload for r in calls if r.phase == "backward"} >= {"aten::mul.Tensor"}
    assert exp["category"] == "Elementwise"


def test_what_was_recorded_is_not_recorded_again(recorded):
    directory, said = recorded
    again = json.loads(enable(*CAPTURE, "--dtype", "float32", "--json", cwd=directory).stdout)
    assert again["recorded_before"] and not said["recorded_before"]
    assert again["calls"] == said["calls"]
    other = enable("capture", "opinfo", "--op", "cos", cwd=directory)
    assert other.returncode == 2 and "exists; pass --force" in other.stderr


def test_an_operator_is_covered_if_every_call_of_it_passes(recorded):
    directory, _ = recorded
    found = enable("coverage", "opinfo", "--json", cwd=directory)
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout)
    rows = {row["name"]: row for row in said["operator_rows"]}
    assert rows["exp"]["outcome"] == "PASS" and rows["exp"]["cases"] > 3
    assert rows["sgn"]["outcome"] != "PASS" and "aten::sgn" in rows["sgn"]["detail"]
    assert said["excluded"]["random"] == ["bernoulli", "uniform"] and not rows.keys() & {"bernoulli", "uniform"}
    drawing = said["random"]
    assert (drawing["total"], drawing["covered"], drawing["percent"]) == (2, 1, 50.0)
    states = [(row["name"], row["outcome"], row["state"]) for row in drawing["operator_rows"]]
    assert states == [("bernoulli", None, "no kernel"), ("uniform", "PASS", "PASS")]
    assert said["operators"]["total"] == len(rows) and said["operators"]["covered"] == 2
    assert said["operators"]["forward"]["total"] >= said["operators"]["backward"]["total"] > 0
    assert sum(c["total"] for c in said["categories"].values()) == len(rows)
    assert said["categories"]["Elementwise"]["covered"] == 1
    assert {"overloads", "calls", "rows"} <= said.keys()
    held = {row["overload"]: row for row in said["rows"] if row["kernel"]}
    not_run = [row for row in held.values() if "were not run" in row["detail"]]  # of bernoulli, which lacks a kernel
    assert said["overloads"]["not_run"] == len(not_run) > 0
    known = said["overloads"]["compute"] - len(not_run)
    assert said["overloads"]["percent"] == round(100 * said["overloads"]["covered"] / known, 1)
    text = enable("coverage", "opinfo", cwd=directory).stdout
    assert f"; of {len(not_run)} not all cases were run, --exhaustive runs them" in text
    assert "OpInfo operators covered: 2 of 3" in text and "not counted  2 (random): bernoulli, uniform" in text
    assert "operators that draw random numbers: 1 of 2" in text


def test_an_operator_that_draws_without_a_law_is_not_covered():
    operator = opinfo.TestedOperator("binomial", "Other", samples=1, random=True, lawless={"aten::binomial"})
    outcome, detail = operator.judge(set(), {}, frozenset())
    assert outcome is Outcome.SKIPPED and detail == f"{opinfo.NO_LAW}: aten::binomial"
    operator.lawless.clear()
    drawn = {("aten::bernoulli", "a")}
    assert operator.judge(drawn, {}, frozenset())[1] == "no kernel: aten::bernoulli"
    wrong = {("aten::bernoulli", "a"): Verdict("a", Outcome.WRONG, "the share is 0.4")}
    served = frozenset({"aten::bernoulli"})
    assert operator.judge(drawn, wrong, served) == (Outcome.WRONG, "aten::bernoulli: the share is 0.4")


def test_categories_stand_beside_published_shares(recorded):
    directory, _ = recorded
    found = enable("compare", "--json", cwd=directory)
    assert found.returncode == 0, found.stderr
    rows = {row["what"].strip(): row for row in json.loads(found.stdout)["rows"]}
    ours = {name: row["this library"] for name, row in rows.items()}
    assert ours["OpInfo operators (opinfo)"] == "66.7 % (2 of 3)" and ours["Elementwise"] == "50.0 % (1 of 2)"
    assert rows["Elementwise"]["TritorX, published"] == "85.9 %" and rows["Reduction"]["TritorX, published"] == "76.2 %"
    assert ours["forward, of those that have it"] == "50.0 % (1 of 2)"
    text = enable("compare", "--markdown", cwd=directory).stdout
    assert "| OpInfo operators (opinfo) | 66.7 % (2 of 3) | 84.7 % (481 of 568) | 53 % |" in text


def test_the_overloads_of_another_trace_alone(recorded):
    directory, _ = recorded
    made = enable("capture", "opinfo", "--op", "exp", "--dtype", "float32", "--name", "exponential", cwd=directory)
    assert made.returncode == 0, made.stderr
    found = enable("coverage", "opinfo", "--of", "exponential", "--json", cwd=directory)
    assert found.returncode == 0, found.stderr
    rows = {row["overload"]: row for row in json.loads(found.stdout)["rows"]}
    assert {"aten::exp", "aten::mul.Tensor"} <= rows.keys() and "aten::sgn" not in rows
    assert rows["aten::exp"]["cases"] >= 3 and rows["aten::exp"]["outcome"] == "PASS"
    refused = enable("coverage", "opinfo", "--of", "nothing", cwd=directory)
    assert refused.returncode == 2 and "nothing" in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("capture", "opinfo", "--op", "nope"), "OpInfo has no operator 'nope'"),
        (("capture", "opinfo", "--dtype", "complex64"), "unknown dtype 'complex64'; choose from bfloat16"),
        (("capture", "nanogpt", "--op", "exp"), "--op, --dtype and --all are for opinfo"),
    ],
)
def test_bad_input(arguments, words, tmp_path):
    found = enable(*arguments, cwd=tmp_path)
    assert found.returncode == 2 and words in found.stderr.splitlines()[-1], found.stderr
    assert not (tmp_path / ".enable" / "traces" / "opinfo.trace").exists()


def test_a_sample_that_fails_is_recorded_with_its_reason(tmp_path):
    told = record(SampleRequest(str(tmp_path / "a.trace"), ("jiterator_unary", "exp"), ("float32",)))
    reasons = {g["operator"]: set(g["failed"].values()) for g in told["groups"]}
    assert reasons["exp"] == set()
    assert any("only supported on CUDA" in reason for reason in reasons["jiterator_unary"])


def test_operators_with_too_many_samples_are_left_out(tmp_path):
    told = record(SampleRequest(str(tmp_path / "a.trace"), ("logspace",), ("float32",)))
    assert told["excluded"] == {"logspace.tensor_overload": "900 samples or more"}
