"""The rules of CONTRIBUTING.md that a machine can hold."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARROWS = {
    "traces": set(),
    "models": set(),
    "capture": {"traces", "models"},
    "verify": {"traces"},
    "generate": {"traces", "verify"},
    "enable": {"traces", "models", "capture", "verify", "generate"},
    "enablekit": {"traces", "capture", "enable"},
}
MODULES = [p for package in ARROWS for p in sorted((ROOT / package).rglob("*.py"))]
ROOMS = {  # what a room imports beside itself and the files above all rooms
    "verify": {
        "lint": set(),
        "contract": {"lint"},
        "sandbox": set(),
        "child": {"contract", "sandbox"},
        "cases": {"contract", "sandbox", "child"},
        "comparison": {"contract", "child", "cases"},
        "judging": {"lint", "contract", "sandbox", "child", "cases", "comparison"},
        "debugging": {"contract", "sandbox", "child", "cases", "judging"},
    },
    "enable": {
        "serve": set(),
        "cover": set(),
        "trace_views": {"cover"},
        "fuse": {"cover", "serve"},
        "survey": {"cover"},
        "train": {"serve", "fuse"},
        "reduce": {"cover"},
        "refine": {"cover"},
        "campaigns": {"cover", "refine"},
        "tune": {"cover", "refine"},
        "report": {"cover", "trace_views", "refine", "campaigns", "tune"},
        "conformance": {"serve"},
        "discover": set(),
        "commands": {
            *("serve", "cover", "trace_views", "fuse", "survey", "train", "refine", "campaigns", "tune", "report"),
            *("conformance", "reduce", "discover"),
        },
    },
}
MAX_LINES, MAX_FUNCTION = 400, 60


def name(path):
    return str(path.relative_to(ROOT))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.fixture(scope="module")
def trees():
    """Of the product, by file; not made where this file is only collected."""
    return {path: ast.parse(path.read_text()) for path in MODULES}


def upward(trees):
    """What files import of ours that no arrow allows, by file."""
    found = {}
    for path, tree in trees.items():
        package = path.relative_to(ROOT).parts[0]
        found[name(path)] = set(imported(tree)) & ARROWS.keys() - ARROWS[package] - {package}
    return {path: packages for path, packages in found.items() if packages}


def test_imports_follow_the_arrows(trees):
    assert upward(trees) == {}


def imported_whole(trees):
    """Files with an `import` of ours in the form that moving a module to another package would break."""
    plain = {path: [n for n in ast.walk(tree) if isinstance(n, ast.Import)] for path, tree in trees.items()}
    return [
        name(path)
        for path, nodes in plain.items()
        if any(alias.name.split(".")[0] in ARROWS for node in nodes for alias in node.names)
    ]


def test_ours_are_imported_by_from_which_the_wheel_rewrites(trees):
    assert not imported_whole(trees)
    assert imported_whole({ROOT / "capture" / "x.py": ast.parse("def f():\n    import traces.values as v")})


def paths_above(trees):
    """Parts of paths by which strings of verify name what no arrow lets it import, by file."""
    above = ARROWS.keys() - ARROWS["verify"] - {"verify", "enablekit"}  # the last names a directory of the user's
    found = {}
    for path, tree in trees.items():
        if path.relative_to(ROOT).parts[0] == "verify":
            strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            found[name(path)] = above & {part for string in strings for part in string.split("/")}
    return {path: parts for path, parts in found.items() if parts}


def test_verify_knows_no_directory_of_a_package_above(trees):
    assert paths_above(trees) == {}
    profiles = "".join(path.read_text() for path in (ROOT / "verify").rglob("*.yaml"))
    assert "blocks: cuda_blocks" in profiles and not re.search(r"\b(capture|enable|generate|models)/", profiles)


def module_of(path):
    """The dotted name of a file of the product."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def arrows(trees):
    """Which modules each module imports, lazily or not, but for types alone. trees: by module."""
    found = {}
    for module, tree in trees.items():
        names = set()
        for node in running(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= (inner & trees.keys()) | ({node.module} if inner - trees.keys() else set())
        found[module] = names & trees.keys()
    return found


def running(tree):
    """The nodes of a program that run: not those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from running(node)


def astray(graph):
    """Imports between rooms that no arrow of ROOMS allows."""
    for module, targets in graph.items():
        for target in targets:
            (package, room, *_), (other, into, *_) = [*module.split("."), ""], [*target.split("."), ""]
            rooms = ROOMS.get(package, {}) if package == other else {}
            if room in rooms and into in rooms.keys() - rooms[room] - {room}:
                yield f"{module} imports {target}"


@pytest.fixture(scope="module")
def graph(trees):
    return arrows({module_of(path): tree for path, tree in trees.items()})


def test_no_file_is_in_an_import_circle(graph):
    TopologicalSorter(graph).prepare()  # a CycleError names its modules


def test_rooms_import_along_the_arrows(graph):
    assert list(astray(graph)) == []
    rooms = {package: {p.parent.name for p in (ROOT / package).glob("*/*.py")} for package in ROOMS}
    assert rooms == {package: set(of) for package, of in ROOMS.items()}


def test_circles_and_imports_astray_would_be_seen():
    texts = {
        "verify.child.a": "def f():\n    from verify.judging import b\n",
        "verify.judging.b": "from typing import TYPE_CHECKING\nfrom verify.cases.c import C\n",
        "verify.cases.c": "import verify.child.a\nif TYPE_CHECKING:\n    import verify.cases.d\n",
        "verify.cases.d": "from verify.cases.c import C\n",
    }
    graph = arrows({module: ast.parse(text) for module, text in texts.items()})
    with pytest.raises(CycleError) as raised:
        TopologicalSorter(graph).prepare()
    assert set(raised.value.args[1]) == {"verify.cases.c", "verify.child.a", "verify.judging.b"}
    assert list(astray(graph)) == ["verify.child.a imports verify.judging.b"]


def documentation(tree):
    """The number of lines of docstrings, which the size of a function does not count."""
    documented = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    strings = [n.body[0] for n in documented if ast.get_docstring(n, clean=False) is not None]
    return sum(string.end_lineno - string.lineno + 1 for string in strings)


def too_long(tree):
    """Functions with more lines than they may have, without the list of parameters."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    return [f.name for f in functions if f.end_lineno - f.body[0].lineno + 1 - documentation(f) > MAX_FUNCTION]


def size(path, text, tree):
    """The number of lines of a module, without docstrings if it is a kernel file, which is one text."""
    is_kernel = name(path).startswith("generate/kernels/")
    return text.count("\n") - (documentation(tree) if is_kernel else 0)


def test_sizes(trees):
    assert not [name(path) for path, tree in trees.items() if size(path, path.read_text(), tree) > MAX_LINES]
    assert not {name(path): long for path, tree in trees.items() if (long := too_long(tree))}


def test_docstrings_count_except_in_kernel_files():
    text = '"""One.\n\nThree.\n"""\n\nx = 1\n'
    sizes = {path: size(ROOT / path, text, ast.parse(text)) for path in ("enable/x.py", "generate/kernels/x/y.py")}
    assert sizes == {"enable/x.py": 6, "generate/kernels/x/y.py": 2}


def test_a_function_that_is_too_long_would_be_seen():
    lines = "".join(f"    {n}\n" for n in range(MAX_FUNCTION))
    assert too_long(ast.parse(f"def f():\n{lines}")) == []
    assert too_long(ast.parse(f"def f():\n{lines}    0\n")) == ["f"]
    assert too_long(ast.parse(f'def f():\n    """Do it."""\n{lines}')) == []


def test_recorder_needs_no_zoo():
    """`from capture import Recorder` must work beside a user's own `models`."""
    code = "import sys, capture; from capture import Recorder; sys.exit('models' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["capture", "--help"], ["trace", "show", "--help"]])
def test_help_imports_neither_torch_nor_triton(arguments):
    code = (
        "import sys; from enable.cli import run; run(sys.argv[1:]);"
        "sys.exit(bool({'torch', 'triton', 'openai', 'pandas'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Usage: enable" in result.stdout


def test_an_upward_import_would_be_seen():
    tree = ast.parse("def f():\n    from generate.kernel_library import Library\n")
    assert upward({ROOT / "verify" / "outcome.py": tree}) == {"verify/outcome.py": {"generate"}}
    assert upward({ROOT / "enable" / "cli.py": tree}) == {}


def test_a_path_into_a_package_above_would_be_seen():
    for text in ('BLOCKS = HERE / "generate" / "blocks"', 'BLOCKS = HERE / "../generate/blocks"'):
        tree = ast.parse(text)
        assert paths_above({ROOT / "verify" / "linking.py": tree}) == {"verify/linking.py": {"generate"}}
        assert paths_above({ROOT / "enable" / "cli.py": tree}) == {}


def class_names(trees):
    """Public class names of the product by the files that define them; a model's Config is what every model has.

    trees: pairs of a file and its tree."""
    found = {}
    for path, tree in trees:
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and path.parent.name != "models":
                found.setdefault(node.name, []).append(name(path))
    return found


def test_a_word_names_one_class(trees):
    assert not {word: files for word, files in class_names(trees.items()).items() if len(files) > 1}


def test_a_word_for_two_classes_is_seen(trees):
    path = ROOT / "verify" / "outcome.py"
    assert class_names([(path, trees[path])] * 2)["Outcome"] == ["verify/outcome.py"] * 2
