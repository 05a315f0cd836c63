"""Bytes on their way from the program to the thread that writes."""

import pytest
import torch

from capture import staging
from capture.staging import SLOT, SMALL, Slots
from traces.span import Span

SIZES = (3, SLOT + 1, SMALL, SMALL + 1, 9 * SLOT + 5, 1, 2 * SLOT)
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("slots", [1, 3, 40])
@pytest.mark.parametrize(
    ("device", "rooms"), [("cpu", False), pytest.param("cuda", True, marks=GPU), pytest.param("cuda", False, marks=GPU)]
)
def test_what_a_call_brings_arrives_as_it_was(monkeypatch, device, slots, rooms):
    """Of every size, by way of few slots and of many, though the program goes on to write."""
    monkeypatch.setattr(staging, "_ROOMS", staging._ROOMS if rooms else 0)
    waiting = Slots(slots * SLOT)
    for seed in range(3):  # rooms and slots are used again
        torch.manual_seed(seed)
        contents = [torch.randint(0, 256, (n,), dtype=torch.uint8, device=device) for n in SIZES]
        expected = [x.cpu().numpy().tobytes() for x in contents]
        spans = [Span(x.untyped_storage(), 0, x.numel(), x.device) for x in contents]
        found, chunks = [b""] * len(SIZES), []

        def read(ahead, chunks=chunks, found=found):
            while len(chunks) > ahead:
                i, chunk = chunks.pop(0)
                if chunk.ready is not None:
                    chunk.ready.synchronize()
                found[i] += chunk.data
                if chunk.slot:
                    waiting.give(chunk.host)

        for numbered in waiting.chunks([(span, None) for span in spans]):
            chunks.append(numbered)
            read(0 if slots < 40 else 100)
        for x in contents:
            x.zero_()
        read(0)
        assert found == expected
