import numpy as np
import pytest
import torch
from blake3 import blake3

from traces import TraceError
from traces.contents import check_stats
from traces.synthesis import draw, pseudonyms, summarise

FLOATS = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
]
INTEGERS = [
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
]


def drawn(stats, count, dtype, seed=7):
    check_stats(stats, "here")
    data = draw(stats, seed, count, dtype, "here")
    assert len(data) == count * dtype.itemsize
    return torch.frombuffer(bytearray(data), dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_come_out_like_the_sample(dtype):
    torch.manual_seed(0)
    x = (torch.randn(20000) * 3 + 1).to(dtype)
    y = drawn(summarise(x, len(x)), len(x), dtype)
    a, b = x.double(), y.double()
    assert abs(a.mean() - b.mean()) < 0.1
    assert abs(a.std() / b.std() - 1) < 0.1
    assert a.min() <= b.min() and b.max() <= a.max()
    assert (a == 0).sum() == (b == 0).sum()


def test_shares_of_special_values_are_exact():
    x = torch.randn(3_000_000)  # more than one chunk
    x[::4] = 0
    x[1::100] = torch.nan
    x[2::1000] = torch.inf
    x[3::1000] = -torch.inf
    y = drawn(summarise(x, len(x)), len(x), torch.float32)
    for tell in (lambda v: v == 0, torch.isnan, torch.isposinf, torch.isneginf):
        assert tell(x).sum() == tell(y).sum()


def test_a_rectified_sample_stays_so():
    torch.manual_seed(0)
    x = torch.randn(10000).relu()
    y = drawn(summarise(x, len(x)), len(x), torch.float32)
    assert (x == 0).sum() == (y == 0).sum()
    assert y.min() == 0
    assert abs(x.mean() - y.mean()) < 0.03


def test_nothing_but_special_values():
    y = drawn(summarise(torch.full((5,), torch.nan), 5), 5, torch.float32)
    assert torch.isnan(y).all()
    assert drawn(summarise(torch.zeros(9), 9), 9, torch.float32).tolist() == [0.0] * 9


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_stay_in_range(dtype):
    limits = torch.iinfo(dtype)
    for low, high in ((limits.min, limits.max), (3, 100), (0, 0)):
        y = drawn({"count": 5000, "min": low, "max": high}, 5000, dtype)
        found = y.numpy()
        assert low <= int(found.min()) and int(found.max()) <= high
        assert len(np.unique(found)) > 50 or high - low < 100 or dtype.itemsize == 1


def test_sorted_and_unique_are_honoured():
    offsets = torch.arange(0, 640, 10)
    y = drawn(summarise(offsets, 64), 64, torch.int64)
    assert (y.diff() > 0).all()
    assert (y[0], y[-1]) == (0, 630)
    again = drawn({"count": 64, "min": 0, "max": 640, "sorted": True}, 64, torch.int32)
    assert (again.diff() >= 0).all()
    assert (again[0], again[-1]) == (0, 640)
    order = torch.randperm(1000)
    y = drawn(summarise(order, 1000), 1000, torch.int64)
    assert sorted(y.tolist()) == list(range(1000))
    assert not torch.equal(y, y.sort().values)
    wide = drawn({"min": -(2**63), "max": 2**63 - 1, "unique": True}, 5000, torch.int64)
    assert len(wide.unique()) == 5000


@pytest.mark.parametrize("ones", [0, 1, 700_000, 1_500_001])
def test_truth_values_are_as_many(ones):
    x = torch.zeros(1_500_001, dtype=torch.bool)
    x[:ones] = True
    y = drawn(summarise(x, len(x)), len(x), torch.bool)
    assert int(y.sum()) == ones


def test_complex_and_scale_formats():
    torch.manual_seed(0)
    x = torch.randn(1000, dtype=torch.complex64)
    y = drawn(summarise(x, 1000), 1000, torch.complex64)
    assert abs(y.abs().mean() - x.abs().mean()) < 0.1
    scales = torch.tensor([0.5, 1.0, 2.0, 4.0] * 50).to(torch.float8_e8m0fnu)
    assert drawn(summarise(scales, 200), 200, torch.float8_e8m0fnu).float().unique().tolist() == [0.5, 1.0, 2.0, 4.0]


def test_the_same_bytes_for_ever():
    x = torch.arange(100.0)
    data = draw(summarise(x, 100), 3, 100, torch.float32, "here")
    assert data == draw(summarise(x, 100), 3, 100, torch.float32, "here")
    assert data != draw(summarise(x, 100), 4, 100, torch.float32, "here")
    raw = draw({"min": 0, "max": 255}, 1, 1000, torch.uint8, "here")
    assert blake3(raw).hexdigest()[:16] == "73038cd0b8312bf7"


def test_a_sample_stands_for_the_whole():
    torch.manual_seed(0)
    x = torch.randn(100000)
    stats = summarise(x[::100], len(x))
    assert stats["count"] == 100000
    assert "unique" not in summarise(torch.arange(10), 100)
    assert abs(drawn(stats, 100000, torch.float32).std() - 1) < 0.1
    assert summarise(torch.tensor([True, False]), 1000)["ones"] == 500


def test_a_mean_alone_is_met():
    y = drawn({"count": 100000, "min": 0.0, "max": 10.0, "mean": 1.0}, 100000, torch.float32)
    assert abs(y.mean() - 1) < 0.03


def test_private_statistics_are_coarse():
    torch.manual_seed(0)
    x = torch.randn(1000) * 1234.567
    stats = summarise(x, 1000, private=True)
    for value in (stats["min"], stats["max"], stats["mean"], stats["std"], *stats["quantiles"]):
        assert value == 0 or float(f"{value:.1e}") == value
    assert abs(stats["max"]) <= x.max()
    few = summarise(torch.tensor([1.2345, 6.789]), 2, private=True)
    assert few == {"count": 2, "min": 1.2, "max": 6.7, "mean": 4.0}
    ids = summarise(torch.tensor([1987, 12]), 2, private=True)
    assert (ids["min"], ids["max"]) == (12, 1900)
    assert "unique" not in ids
    assert not summarise(torch.randperm(1999), 1999, private=True)["unique"]  # 0 .. 1900 hold no 1999 numbers


@pytest.mark.parametrize("top", [0, 1, 2, 64, 65, 1000, 2**40])
def test_pseudonyms_permute(top):
    values = torch.randint(0, top + 1, (3000,)).numpy()
    values[0] = top
    values[1] = 0
    given = values.copy()
    found = pseudonyms(values, b"key")
    assert (values == given).all()
    assert found.min() >= 0 and found.max() <= top
    assert len(np.unique(found)) == len(np.unique(values))
    assert dict(zip(values.tolist(), found.tolist(), strict=True)).keys() == set(values.tolist())
    assert all(len(np.unique(found[values == v])) == 1 for v in np.unique(values)[:50])
    if top >= 64:
        assert (found != pseudonyms(values, b"other")).any()
        assert (found != values).mean() > 0.5


def test_sentinels_are_kept():
    values = np.array([-100, 5, -1, 5, 9])
    found = pseudonyms(values, b"key")
    assert found[[0, 2]].tolist() == [-100, -1]
    assert found[1] == found[3] != found[4]


BAD = {
    "more true than elements": ({"ones": 5}, torch.bool),
    "fractions as limits": ({"min": 0.5, "max": 2.5}, torch.int32),
    "out of range": ({"min": 0, "max": 300}, torch.uint8),
    "not enough numbers": ({"min": 0, "max": 2, "unique": True}, torch.int64),
    "a dtype of no bytes of its own": ({"min": 0, "max": 2}, torch.quint8),
}


@pytest.mark.parametrize(("stats", "dtype"), BAD.values(), ids=BAD.keys())
def test_statistics_that_do_not_fit(stats, dtype):
    with pytest.raises(TraceError, match="here"):
        draw(stats, 1, 4, dtype, "here")
