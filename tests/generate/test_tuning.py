"""The parts of a search for speed that need neither a GPU nor a model."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
from timings import H100, measurement, recording, shape_times

from enable.tune.profiler import ABSENT, lines, profiled
from generate import BLOCKS
from generate.kernel_search.advice import explain_times, reasons
from generate.kernel_search.measurement import ROUNDS, Measurement, TimedLaunch, TimedShape, gain
from generate.kernel_search.occupancy import occupancy
from generate.kernel_search.skills import Skill, SkillStore, Support, shape_class
from generate.kernel_search.space import Space, fixed, size_class, with_rows
from generate.kernel_search.tree import Move, Tree, TreeNode
from generate.llm import Message, Options, ProviderError, Request, load_provider
from generate.llm.turns import SHIPPED
from generate.recording import load_recordings, overload_of
from traces import TraceError, UserError, jsonable
from verify.lint import lint_answer, load_profile

NAMES = ["a", "b", "c"]
FILE = 'SPACE = (("BLOCK", (128, 256)), ("WARPS", (4, 8)))\nTUNED = (("", 0, 256, 4),)\nX = 1\n'


def shape(name="a", nbytes=2.9e7, flops=0.0, elements=1 << 20):
    return TimedShape(name, None, nbytes, flops, elements, "bfloat16")


# -- gains ------------------------------------------------------------------------------------------------------------


def test_a_gain_is_of_the_geometric_mean_and_told_with_its_noise():
    found = gain(measurement(NAMES, [10.0, [5.0, 10.0, 20.0]]), 1)
    assert found.mean == pytest.approx(1.0, rel=1e-3) and found.slowest == "c"
    assert 1 < found.noise < 1.01


@pytest.mark.parametrize(
    "after, refused",
    [
        (9.0, ""),
        (9.75, "less than 3% beyond noise"),
        ([8.0, 8.0, 10.6], "c takes 6.0% longer"),
        ([8.0, 8.0, 10.4], ""),
    ],
)
def test_what_is_accepted(after, refused):
    found = gain(measurement(NAMES, [10.0, after]), 1)
    assert refused in found.refusal and bool(found.refusal) == bool(refused)


def test_what_may_be_noise_is_not_accepted():
    clean = measurement(NAMES, [10.0, 9.5])
    assert not gain(clean, 1).refusal
    noisy = tuple({n: shape_times(t[n].median, ROUNDS, 0.6) for n in NAMES} for t in clean.times)
    assert "beyond noise" in gain(replace(clean, times=noisy, again=noisy[0]), 1).refusal
    drifted = replace(clean, again={n: shape_times(10.8, ROUNDS) for n in NAMES})
    found = gain(drifted, 1)
    assert found.noise == pytest.approx(1.08, rel=1e-2) and "beyond noise" in found.refusal


def test_a_measurement_is_kept_as_json():
    found = measurement(NAMES, [10.0, 9.0])
    assert Measurement.of_json(json.loads(json.dumps(jsonable(found))), "here") == found
    with pytest.raises(TraceError, match="here: not a measurement"):
        Measurement.of_json({"device": {}, "times": []}, "here")


def test_the_limit_is_of_a_launch_of_bytes_or_of_operations():
    assert H100.limit(shape(nbytes=10)) == 2.0
    assert H100.limit(shape(nbytes=2.9e7)) == pytest.approx(10.0)
    assert H100.limit(shape(nbytes=10, flops=7e9)) == pytest.approx(10.0)
    found = measurement(["a"], [20.0])
    assert found.ratio([shape()], 0) == pytest.approx(0.5, rel=1e-2)


# -- why a kernel is slow ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "warps, registers, shared, programs, by",
    [
        (4, 32, 0, 16, "warps"),  # 64 warps, 4 each
        (4, 64, 0, 8, "registers"),  # 2,048 registers a warp, 32 warps
        (8, 128, 0, 2, "registers"),
        (1, 16, 0, 32, "programs"),
        (4, 32, 100_000, 2, "shared memory"),
        (4, 255, 0, 2, "registers"),
    ],
)
def test_how_many_programs_a_multiprocessor_holds(warps, registers, shared, programs, by):
    found = occupancy("sm_90", warps, registers, shared)
    assert (found.programs, found.by) == (programs, by)
    assert found.share == pytest.approx(programs * warps / 64)
    assert occupancy("gfx942", warps, registers, shared) is None


@pytest.mark.parametrize(
    "launches, host, said",
    [
        ([TimedLaunch("k", 1000, 4, 32, 0, 0)], 90.0, "launch-bound: the host takes 90 us"),
        ([TimedLaunch("k", 1000, 4, 32, 0, 0)] * 2, 5.0, "2 launches, each of which costs at least 2.0 us"),
        ([TimedLaunch("k", 1000, 4, 255, 40, 0)], 5.0, "spills 40 registers"),
        ([TimedLaunch("k", 1000, 4, 255, 0, 0)], 5.0, "leaves 88% of the warps unused, for want of registers"),
        ([TimedLaunch("k", 12, 4, 32, 0, 0)], 5.0, "12 programs on 132 multiprocessors: most are idle"),
        ([TimedLaunch("k", 2200, 4, 32, 0, 0)], 5.0, "1.04 waves: the last one leaves"),
    ],
)
def test_why_it_is_slow_is_told(launches, host, said):
    times = replace(shape_times(40.0, ROUNDS, host=host), launches=tuple(launches))
    assert said in "\n".join(reasons(H100, shape(), times))
    text = explain_times(H100, [shape()], [times], "ncu says nothing.")
    assert said in text and "ncu says nothing." in text


def test_what_is_near_the_limit_is_left_alone():
    assert list(reasons(H100, shape(), shape_times(11.0, ROUNDS))) == [
        "It is near the limit: little is left to gain here."
    ]


def test_what_the_profiler_says(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profiled(lambda words: 1 / 0) == ABSENT
    text = (
        "==PROF== connected\n"
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","k","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","71.2"\n'
        '"1","void at::native::fill","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","3"\n'
    )
    assert lines(text) == ["ncu: k: 71.2 % of the memory's bandwidth"]


# -- the tree ---------------------------------------------------------------------------------------------------------


def grown(*rewards):
    """A tree whose candidates have these rewards, each hung where the tree chose."""
    tree = Tree([TreeNode(0, Move.ROOT, (), "PASSED", "in force", 0.4, mean=1.0)])
    for reward in rewards:
        move, parents = tree.next()
        number = len(tree.nodes)
        source = f"file {number}" if reward else None
        tree.nodes.append(TreeNode(number, move, parents, "PASSED", source, reward, mean=reward / 0.4))
    return tree


def test_a_text_that_was_measured_twice_counts_with_its_best_measurement():
    tree = grown(0.4, 0.6, 0.8)
    tree.nodes[1] = replace(tree.nodes[1], source=tree.nodes[3].source)
    assert [node.number for node in tree.best(3)] == [3, 2, 0]


def test_moves_take_turns_and_the_best_two_are_combined():
    tree = grown(0.5, 0.6, 0.45, 0.7, 0.5)
    assert [n.move for n in tree.nodes] == [
        Move.ROOT, Move.INHERIT, Move.COMPARE, Move.COMPARE, Move.COMBINE, Move.ANEW,
    ]  # fmt: skip
    assert tree.nodes[4].parents == (2, 1) and tree.best()[0].number == 4


def test_the_search_goes_on_where_rewards_are_high():
    tree = grown(0.9, 0.41)
    assert tree.chosen().number == 1, "the root has its children, of which the first is better"
    many = grown(*[0.9, 0.41, *[0.3] * 14])
    assert len(many.children(2)) > 0, "in the end what was looked at little is tried, too"


def test_what_is_wrong_has_no_reward_and_is_not_gone_on_from():
    tree = grown(0.0, 0.0, 0.0)
    assert {n.parents for n in tree.nodes[1:]} == {(0,)} and tree.best(3) == [tree.nodes[0]]


# -- skills -----------------------------------------------------------------------------------------------------------


def skill(before=10.0, after=8.0, text="short rows: several a program", target="sm_90", rounds=31):
    one = Support("sum(self: float32 [64])", shape_class(4096), before, after, rounds, "0" * 64, "1" * 64)
    return Skill(text, "accumulate", "aten::sum", target, (one,))


def test_skills_are_found_by_family_shapes_and_target(tmp_path):
    store = SkillStore(tmp_path / "skills.jsonl")
    store.add(skill())
    store.add(skill(after=5.0, text="wide loads"))
    store.add(skill())
    known = SkillStore(tmp_path / "skills.jsonl")
    assert [s.text for s in known.find("accumulate", {"up to 4,096 elements"}, "sm_90")] == [
        "wide loads", "short rows: several a program",
    ]  # fmt: skip
    assert "10.0 us before, 5.0 us after" in known.skills[1].line
    for family, classes, target in (
        ("exact", "up to 4,096 elements", "sm_90"),
        ("accumulate", "more than 2^20 elements", "sm_90"),
        ("accumulate", "up to 4,096 elements", "gfx942"),
    ):
        assert not known.find(family, {classes}, target)


@pytest.mark.parametrize("made", [skill(after=10.0), skill(text=" "), skill(rounds=0), replace(skill(), support=())])
def test_a_skill_that_no_measurement_supports_is_refused(tmp_path, made):
    with pytest.raises(UserError, match="without measurements that support it"):
        SkillStore(tmp_path / "skills.jsonl").add(made)
    assert not (tmp_path / "skills.jsonl").exists()


# -- settings ---------------------------------------------------------------------------------------------------------


def test_a_space_is_read_and_its_table_written():
    space = Space.of(FILE, "k.py")
    assert space.settings == [(128, 4), (128, 8), (256, 4), (256, 8)] and space.default == (256, 4)
    assert space.named((128, 8)) == "BLOCK 128, WARPS 8"
    rows = space.chosen("sm_90", {10: (128, 4), 12: (128, 4), 16: (256, 4), 20: (256, 8)})
    text = with_rows(FILE, rows)
    assert '    ("sm_90", 1024, 128, 4),\n    ("sm_90", 65536, 256, 4),\n' in text
    assert text.endswith("X = 1\n") and Space.of(text, "k.py").rows == rows
    other = Space.of(text, "k.py").chosen("sm_80", {10: (128, 8)})
    assert {row[0] for row in other} == {"", "sm_80", "sm_90"}, "what other targets have stays"
    assert Space.of(fixed(text, (128, 8)), "k.py").rows == (("", 0, (128, 8)),)
    assert [size_class(n) for n in (0, 1, 1023, 1024)] == [0, 0, 9, 10]


@pytest.mark.parametrize(
    "text, said",
    [
        ("X = 1\n", "declares no SPACE"),
        ('SPACE = (("BLOCK", (1,)),)\nTUNED = (("", 0, 1),)\n', "1 settings; 2 to 64 can be timed"),
        ('SPACE = (("BLOCK", (1, 2)),)\n', "TUNED has to begin with"),
        ('SPACE = (("BLOCK", (1, 2)),)\nTUNED = (("sm_90", 0, 1),)\n', "TUNED has to begin with"),
        ('SPACE = (("BLOCK", (1, 2)),)\nTUNED = (("", 0),)\n', "TUNED has to begin with"),
        ("SPACE = 3\nTUNED = 4\n", "declares no SPACE"),
        ('SPACE = ("BLOCK",)\nTUNED = (("", 0, 1),)\n', "are not like"),
    ],
)
def test_a_space_that_makes_no_sense(text, said):
    with pytest.raises(UserError, match=said):
        Space.of(text, "k.py")


def test_the_block_takes_the_last_row_that_holds():
    path = Path(__file__).parents[2] / "generate" / "blocks" / "tuning.py"
    spec = importlib.util.spec_from_file_location("tuning_block", path)
    block = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(block)
    table = (("", 0, 1, 2), ("", 100, 3, 4), ("sm_90", 100, 5, 6), ("sm_80", 0, 7, 8))
    assert block.tuned(table, (9, 11), (3,)) == (1, 2) and block.tuned(table, (100,)) == (3, 4)
    block.TUNING_TARGET = "sm_90"
    assert block.tuned(table, (2,), (10, 10)) == (5, 6) and block.tuned(table, ()) == (1, 2)


# -- answers in turn --------------------------------------------------------------------------------------------------


def test_recorded_answers_are_given_in_turn(tmp_path):
    recording(tmp_path / "sum.jsonl", "aten::sum", ["one", "two"])
    model = load_provider("turns", Options(recordings=tmp_path))
    place = tmp_path / "tune" / "aten.sum" / "run-001"

    def ask(number, directory=place):
        return model.complete(Request((Message("user", "whatever"),), 1.0, "generate", number, directory)).text

    assert (ask(1), ask(2)) == ("one", "two")
    with pytest.raises(ProviderError, match="call 3 of aten.sum: 2 answers are recorded"):
        ask(3)
    with pytest.raises(ProviderError, match="0 answers are recorded"):
        ask(1, tmp_path / "tune" / "aten.exp" / "run-001")
    with pytest.raises(ProviderError, match="no recordings"):
        load_provider("turns", Options(recordings=tmp_path / "nothing"))


def test_the_campaign_has_answers_for_five_operators():
    model = load_provider("turns")
    assert len(model._answers) >= 5 and all(len(answers) >= 2 for answers in model._answers.values())


@pytest.mark.parametrize("profile", ["triton", "triton-nvidia"])
def test_lint_has_nothing_against_them(profile):
    rules = load_profile(profile).with_blocks(BLOCKS)
    for path in SHIPPED.glob("*.jsonl"):
        for exchange in load_recordings(SHIPPED, path.name):
            assert lint_answer(exchange.answer.text, rules, overload_of(path))[1] == [], exchange.where
