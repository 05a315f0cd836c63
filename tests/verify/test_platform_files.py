"""Platforms as files of the user's: what they inherit, and what is wrong in them, with its line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from traces import UserError
from verify import platforms
from verify.child.probe import KERNEL
from verify.lint import lint, load_profile

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/platforms/platform-file.md").read_text()
DOCUMENTED = re.search(r"```yaml\n(.*?)```", PAGE, re.S)[1]


@pytest.fixture
def written(tmp_path):
    def write(text, name="mychip.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_what_a_file_does_not_say_is_its_bases(written):
    path = written(DOCUMENTED)
    mine, sim = platforms.load(path), platforms.load("sim")
    assert (mine.name, mine.typed, mine.alignment) == ("mychip", path, 32)
    assert [t.arch for t in mine.targets] == ["gfx942"] and mine.execute_seconds == sim.execute_seconds
    profile = load_profile(mine.lint)
    assert "float64" not in profile.dtypes and profile.alignment == 32 and "scatter-store" in profile.forbidden
    assert "tl.exp" in profile.kernel.names and "no float64" in profile.instead("tl.float64")
    assert any(v.rule == "dtypes" for v in lint(KERNEL.replace('"float32"', '"float64"'), profile))
    assert lint(KERNEL, profile) == []


def test_the_documented_device_is_read_and_every_field_is_in_the_table(written):
    fields = re.search(r"```yaml\n(device:.*?)```", PAGE, re.S)[1]
    mine = platforms.load(written(f"base: sim\n{fields}"))
    assert (mine.device, mine.module, mine.launcher) == ("mychip", "torch_mychip", "triton")
    assert mine.device_files == ("/dev/mychip*",) and mine.targets[0].options == (("num_warps", 4),)
    names = [name for line in fields.splitlines() if (name := line.partition(":")[0]).islower() and name[0] != " "]
    table = PAGE.partition("| field | meaning |")[2]
    assert len(names) == 7 and all(f"`{name}`" in table for name in names if name != "targets")


def test_comments_and_order_of_a_file_change_no_verdict(written):
    def digest(text):
        return platforms.load(written(text)).sha256

    first = digest("base: sim\nlint: triton\nexecute_seconds: 9\n")
    assert digest("# mine\nexecute_seconds: 9\nlint: triton\ndescription: x\nbase: sim # here\n") == first
    assert digest("base: sim\nlint: triton\nexecute_seconds: 8\n") != first


def test_files_build_on_files(written):
    first = written(DOCUMENTED)
    second = platforms.load(written("base: ./mychip.yaml\nalignment: 64\nlint: mtia-like\n", "next.yaml"))
    assert (second.name, second.alignment, second.lint) == ("next", 64, "mtia-like")
    assert second.targets == platforms.load(first).targets
    changed = second.sha256
    written(DOCUMENTED.replace("alignment: 32", "alignment: 16"))
    assert platforms.load(second.typed).sha256 != changed  # verdicts on what it is based on are no longer its own
    dialect = written("base: triton\nforbidden: [half-maths]\n", "dialect.yaml")
    own = platforms.load(written("base: sim\nlint: ./dialect.yaml\n", "own.yaml"))
    assert Path(own.lint) == Path(dialect) and load_profile(own.lint).forbidden == {"half-maths"}
    Path(dialect).write_text("base: triton\nforbidden: [scatter-store]\n")
    assert platforms.load(own.typed).sha256 != own.sha256


@pytest.mark.parametrize(
    "change, line, told",
    [
        (("alignment:", "aligment:"), 6, "unknown field aligment; do you mean alignment?"),
        (("alignment: 32", "alignment: 33"), 6, "power of two"),
        (("base: sim ", "base: sym "), 2, "unknown base 'sym'; choose from cuda, hip, sim, xpu"),
        (("base: sim ", "# base: sim "), 3, "no base: say from which platform"),
        (("warp_size: 64", "warp_size: many"), 5, "targets.0.warp_size: Input should be a valid integer"),
        (("warp_size: 64", "warp_size: 16"), 5, "targets.0: warp_size 16: backend hip has 32 or 64"),
        (("alignment: 32 ", "memory_bytes: 1000 #"), 6, "memory_bytes: too little to run a kernel; at least 33554432"),
        (("    tl.float64: ", "    tl.float63: "), 14, "unknown name 'tl.float63'; write it as kernel files do"),
        (('"this chip has no', '[1] # "this'), 14, "the hint for tl.float64 is [1]; write what to use instead"),
        (("    tl.float64: ", "    torch.float64: 3 # "), 14, "the hint for torch.float64 is 3"),
        (("shared_bytes", "shared_byte"), 5, "do you mean shared_bytes?"),
        (("[scatter-store]", "[scatter]"), 9, "no rule 'scatter'; choose from scatter-store, half-maths"),
        (("dtypes: [float64]", "dtypes: [float63]"), 11, "'float63' is not in dtypes"),
        (("kernel: {names", "kernels: {names"), 12, "there is no 'kernels' here"),
        (("  base: triton\n", "  base: tritium\n"), 8, "unknown dialect 'tritium'; choose from"),
        (("  forbidden:", "  forbiden:"), 9, "unknown field 'forbiden'"),
        (("description: ", "name: cuda #"), 3, "'cuda' is a platform of the toolkit"),
        (("targets: ", "targets: ]"), 4, "not YAML"),
        (("alignment: 32 ", "alignment: 32\nalignment: 64 "), 7, "alignment is set twice; remove one of them"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(written, change, line, told):
    assert DOCUMENTED.count(change[0]) == 1
    path = written(DOCUMENTED.replace(*change))
    with pytest.raises(UserError) as error:
        load_profile(platforms.load(path).lint)
    assert str(error.value).startswith(f"{path}:{line}: ") and told in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_file_of_a_platform(written, tmp_path):
    for path in (str(tmp_path / "none.yaml"), written("[1, 2]"), written("")):
        with pytest.raises(UserError, match="cannot be read|not a mapping"):
            platforms.load(path)
    own = written("base: ./mychip.yaml\n")
    with pytest.raises(UserError, match=r"mychip.yaml:1: .* is based on itself"):
        platforms.load(own)
    with pytest.raises(UserError, match=r"unknown platform .simm., did you mean sim\?.*name a file: ./simm.yaml"):
        platforms.load("simm")


def test_reading_a_file_imports_no_triton(written):
    """Whether kernels are interpreted is settled when Triton is imported."""
    path = written(DOCUMENTED.replace("    tl.float64: ", "    tl.dot_scaled: wide\n    sort: none\n    tl.float64: "))
    code = (
        "import sys; from verify.lint import load_profile; load_profile(sys.argv[1]); sys.exit('triton' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=False).returncode == 0
