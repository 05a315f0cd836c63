import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small matrices gain nothing from threads, and lose much when other tests run beside them."""
    torch.set_num_threads(1)
