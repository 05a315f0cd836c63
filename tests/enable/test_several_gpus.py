"""Data-parallel training with the library's kernels. On two GPUs: pytest -m gpu tests/enable/test_several_gpus.py"""

from contextlib import nullcontext

import pytest
import torch

STEPS, RANKS = 5, 2
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < RANKS, reason=f"fewer than {RANKS} CUDA devices"),
]


def train(rank, served, home):
    """What one process does: its own data, gradients averaged over all; losses, weights and served calls are kept."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from enable.library import use
    from models.nanogpt import Config, build

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{home}/meet-{served}", rank=rank, world_size=RANKS)
    training = build(Config(n_layer=2, n_embd=64, n_head=2, block_size=32, batch=8, seed=rank), device=f"cuda:{rank}")
    parallel = DistributedDataParallel(training.model, device_ids=[rank])  # rank 0's weights
    training.forward = lambda batch: parallel(batch[0])
    with use("cuda", unverified=True) if served else nullcontext() as registration:
        losses = [float(training.step(next(training.batches))) for _ in range(STEPS)]
        torch.cuda.synchronize()
    weights = [p.detach().cpu() for p in training.model.parameters()]
    counts = dict(registration.counts.served) if served else {}
    torch.save({"losses": losses, "weights": weights, "served": counts}, home / f"{served}-{rank}.pt")
    dist.destroy_process_group()


def test_nanogpt_trains_as_with_pytorchs_own_kernels(tmp_path):
    for served in (False, True):
        torch.multiprocessing.spawn(train, (served, tmp_path), nprocs=RANKS)
    native, library = (
        [torch.load(tmp_path / f"{served}-{rank}.pt") for rank in range(RANKS)] for served in (False, True)
    )
    for own, ours in zip(native, library, strict=True):
        assert sum(ours["served"].values()) > 100 * STEPS and "aten::mm" in ours["served"]
        torch.testing.assert_close(ours["losses"], own["losses"], rtol=1e-4, atol=0)
    assert native[0]["losses"] != native[1]["losses"]  # each rank has data of its own
    for first, second in zip(library[0]["weights"], library[1]["weights"], strict=True):
        assert torch.equal(first, second)  # and all have one model
