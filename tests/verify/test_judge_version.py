"""A verdict is keyed by the versions of the layers that decide it; a layer whose meaning changed has to be raised."""

import shutil
from pathlib import Path

import pytest
import yaml

from traces import facts
from verify import platforms
from verify.judging import layers
from verify.judging.layers import FILES, MAKING, Layer, deciding, digests, layer_of, main, noted
from verify.judging.verdicts import Identity, VerdictStore, judge_version
from verify.outcome import Outcome, Verdict

ROOT = Path(__file__).parents[2]
SIM, CUDA = platforms.load("sim"), platforms.load("cuda")


@pytest.fixture
def copied(tmp_path):
    for package in ("verify", "traces"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def changed(root):
    """Layers whose meaning under `root` is not what is noted."""
    return {name for name, digest in digests(root).items() if digest != noted()[name].digest}


def test_each_layer_was_raised_or_kept_since_it_changed():
    found = digests(ROOT)
    stale = " ".join(name for name, layer in noted().items() if layer.digest != found[name])
    assert not stale, (
        f"these layers of judging changed: {stale}. May a verdict change by it? "
        f"Then: python -m verify.judging.layers raise {stale}; if not: python -m verify.judging.layers keep {stale}"
    )
    assert noted().keys() == {*FILES, MAKING}


@pytest.mark.parametrize(
    "name, layer",
    {
        "verify/comparison/compare.py": "comparison", "verify/comparison/laws.py": "laws",
        "verify/judging/job_run.py": "trial", "verify/cases/references.py": "cases", "traces/values.py": "cases",
        "verify/child/guards.py": "child", "verify/child/races.py": "interpreter", "verify/child/devices.py": "devices",
        "verify/contract/derive.py": "contract", "verify/sandbox/confine.py": "sandbox",
    }.items(),
)  # fmt: skip
def test_an_edit_of_a_deciding_file_changes_its_layer(copied, name, layer):
    path = copied / name
    path.write_text(path.read_text() + "\nEDITED = 1\n")
    assert changed(copied) == {layer}


@pytest.mark.parametrize("name", ["verify/judging/trial.py", "verify/cases/extended.py", "verify/lint/host.py"])
def test_an_edit_of_what_chooses_cases_asks_whole_trials_again(copied, name):
    path = copied / name
    path.write_text(path.read_text() + "\nEDITED = 1\n")
    assert changed(copied) == {MAKING}


def test_comments_and_docstrings_change_no_layer(copied):
    for path in deciding(copied):
        text = path.read_text()
        path.write_text("# edited\n" + text.replace('"""', '"""Edited. ', 1))
    assert not changed(copied)


@pytest.mark.parametrize(
    "tag, of",
    {
        "sums": {"contract"}, "reads_contents": {"cases"}, "growing": {"child"}, "open_ties": {"comparison"},
        "laxer": {"contract"}, "of_contiguous": {"making"}, "fused_reductions": set(), "producers": set(),
    }.items(),
)  # fmt: skip
def test_an_edited_fact_changes_the_layers_whose_files_read_it(copied, tag, of):
    path = copied / "traces" / "facts.yaml"
    parsed = facts.read(path)
    parsed[tag] = {"reason": "", "names": [*facts.names(parsed[tag]) ^ {"mm"}]}
    path.write_text(yaml.dump(parsed))
    assert changed(copied) == of


def test_a_reason_changes_no_layer(copied):
    path = copied / "traces" / "facts.yaml"
    parsed = facts.read(path)
    path.write_text(yaml.dump({tag: {**fact, "reason": "Edited."} for tag, fact in parsed.items()}))
    assert not changed(copied)


@pytest.mark.parametrize(
    "name",
    [
        "verify/debugging/debugger.py", "verify/comparison/mutants.py", "verify/judging/smoke.py", "traces/writer.py",
        "traces/diff.py",
    ],
)  # fmt: skip
def test_an_edit_of_any_other_file_changes_none(copied, name):
    path = copied / name
    path.write_text(path.read_text() + "\nEDITED = 1\n")
    assert not changed(copied)


def test_a_new_file_is_seen_once_it_is_imported(copied):
    new = copied / "verify" / "opinions" / "taste.py"
    new.parent.mkdir()
    new.write_text("SOUR = 1\n")
    assert not changed(copied)
    run = copied / "verify" / "judging" / "job_run.py"
    run.write_text(run.read_text() + "\n\ndef late():\n    from verify.opinions import (\n        taste,\n    )\n")
    assert new in deciding(copied) and changed(copied) == {"trial", "contract"}


def test_a_file_that_is_in_no_layer_is_told():
    with pytest.raises(LookupError, match="enable/run.py is in no layer of judging; add it to one of interpreter, "):
        layer_of("enable/run.py")


def raised(name):
    return {**noted(), name: Layer(noted()[name].version + 1, "")}


KEPT = {  # what a raised layer leaves: of a platform, and of an overload that draws there or does not
    "interpreter": {"cuda exp", "cuda rand"},
    "devices": {"sim exp", "sim rand"},
    "laws": {"sim exp", "cuda exp"},
    **dict.fromkeys(("comparison", "cases", "child", "sandbox", "trial", "contract"), set()),
    MAKING: {"sim exp", "sim rand", "cuda exp", "cuda rand"},
}


@pytest.mark.parametrize("name", [*FILES, MAKING])
def test_a_raised_layer_asks_only_the_verdicts_again_that_it_can_change(name, tmp_path, monkeypatch):
    store = VerdictStore(tmp_path / "verdicts.sqlite")
    asked = {
        f"{platform.name} {name}": Identity((f"aten::{name}", "0"), f"aten::{name}", "case", platform)
        for platform in (SIM, CUDA)
        for name in ("exp", "rand")
    }
    for identity in asked.values():
        store.put(identity, Verdict("case", Outcome.PASS), 0.0)
    for platform in (SIM, CUDA):
        store.put_whole("0", "aten::exp", platform, "", "")
        assert store.standings(platform).tried == {"0"}
    now = raised(name)
    monkeypatch.setattr(layers, "noted", lambda: now)
    judge_version.cache_clear()
    try:
        assert {what for what, identity in asked.items() if store.get(identity)} == KEPT[name]
        known = {
            f"{platform.name} {overload.removeprefix('aten::')}"
            for platform in (SIM, CUDA)
            for _, overload in store.standings(platform)
        }
        assert known == KEPT[name]
        assert not any(store.standings(platform).tried for platform in (SIM, CUDA) if name == MAKING)
    finally:
        monkeypatch.undo()
        judge_version.cache_clear()
        store.close()


def test_raise_and_keep_note_what_a_layer_means_now(tmp_path, monkeypatch, capsys):
    path = tmp_path / "layers.yaml"
    path.write_text(layers.NOTED.read_text().replace(noted()["trial"].digest, "0" * 16))
    monkeypatch.setattr(layers, "NOTED", path)
    read = layers.noted.__wrapped__
    found = digests(ROOT)
    for word, version in (("keep", 1), ("raise", 2)):
        monkeypatch.setattr(layers, "noted", read)
        before = read()
        assert main([word, "trial"]) == 0
        assert read()["trial"] == Layer(before["trial"].version + version - 1, found["trial"])
        assert {n for n in FILES if read()[n] != before[n]} == {"trial"}
    assert main(["raise", "taste"]) == main(["mend", "trial"]) == main([]) == 2
    assert "layers: interpreter, devices, " in capsys.readouterr().err
