"""Modules in C++: built once, or the reason why not in a line."""

import pytest

from capture.compiled import NativeModule, Unavailable
from capture.keys import MODULE


def test_a_compiler_that_fails_is_told_in_a_line_and_leaves_nothing(tmp_path):
    sources = tmp_path / "cpp"
    sources.mkdir()
    (sources / "module.cpp").write_text("#error of the user's compiler\n")
    with pytest.raises(Unavailable, match="its compiler failed: .*of the user's compiler") as caught:
        NativeModule("refused", sources, "what does not compile").load(tmp_path / "built")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "built").iterdir()) == []


def test_a_module_of_another_kind_is_named(tmp_path):
    place = MODULE.built_path(tmp_path)
    place.parent.mkdir()
    place.write_bytes(b"no module")
    with pytest.raises(Unavailable, match="delete it to have it built anew"):
        MODULE.load(tmp_path)


SMALL = """
#include <Python.h>
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "small", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_small() { return PyModule_Create(&definition); }
"""


def test_it_is_built_once(tmp_path, capsys):
    (tmp_path / "small.cpp").write_text(SMALL)
    module = NativeModule("small", tmp_path, "a small module")
    assert module.load(tmp_path / "built") is module.load(tmp_path / "built")
    assert capsys.readouterr().err == "building a small module, once for this PyTorch (10 to 30 s)\n"


def test_a_switch_does_without(tmp_path, monkeypatch):
    monkeypatch.setenv("ENABLE_NATIVE", "0")
    with pytest.raises(Unavailable, match="ENABLE_NATIVE=0"):
        MODULE.load(tmp_path)
    assert list(tmp_path.iterdir()) == []
