import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small matrices gain nothing from threads, and lose much when other tests run beside them."""
    torch.set_num_threads(1)


@pytest.fixture
def criteo(tmp_path):
    """Writes a file in Criteo's format and gives its path. lines: each the columns that differ, or its text."""

    def write(*lines):
        texts = [line if isinstance(line, str) else criteo_line(**line) for line in lines]
        (tmp_path / "day.tsv").write_text("".join(f"{text}\n" for text in texts))
        return str(tmp_path / "day.tsv")

    return write


def criteo_line(label="1", dense=("5",) * 13, categories=("68fd1e64",) * 26):
    return "\t".join([label, *dense, *categories])
