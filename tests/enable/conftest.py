import pytest

from enable.cli import run


@pytest.fixture
def enable(tmp_path, capfd):
    """A function that runs a command in a workspace of its own; returns exit status, stdout and stderr."""

    def call(*words):
        capfd.readouterr()
        status = run(["--workspace", str(tmp_path / "workspace"), *map(str, words)])
        return status, *capfd.readouterr()

    return call
