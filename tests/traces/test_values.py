import math
import subprocess
import sys

import pytest
import torch

from traces import TraceError
from traces.values import ALIGNMENT, MAX_UNKNOWN_BYTES, Packed, pack, unpack


def round_trip(**arguments):
    packed = pack(arguments)
    data = [None if d is None else bytes(d) for d in packed.data]
    return unpack(Packed.from_header(packed.header(), data, "test"))


def address(t):
    return t.data_ptr() % ALIGNMENT


STRIDED = {
    "row-major": torch.arange(6.0).view(2, 3),
    "expanded": torch.arange(3.0).expand(4, 3),
    "overlapping": torch.arange(10.0).as_strided((4, 3), (2, 1)),
    "slice with offset": torch.arange(32.0).view(2, 16)[:, 3:7],
    "transposed": torch.arange(6.0).view(2, 3).t(),
    "channels last": torch.arange(48.0).view(2, 3, 2, 4).to(memory_format=torch.channels_last),
    "scalar": torch.tensor(2.5),
    "empty": torch.empty(3, 0, 2),
    "size-one dimension": torch.arange(4.0).as_strided((4, 1), (1, 4)),
    "not 8-byte aligned": torch.arange(9.0)[1:],
}


@pytest.mark.parametrize("t", STRIDED.values(), ids=STRIDED.keys())
def test_layout_survives(t):
    back = round_trip(t=t)["t"]
    assert (back.shape, back.stride(), back.dtype) == (t.shape, t.stride(), t.dtype)
    assert torch.equal(back, t)
    assert t.numel() == 0 or address(back) == address(t)


def test_arguments_that_share_memory_share_it_again():
    qkv = torch.arange(24.0).view(2, 12)
    q, k, v = qkv.split(4, dim=1)
    packed = pack({"q": q, "k": k, "v": v, "again": q})
    assert [g.nbytes for g in packed.groups] == [96]  # one span of the whole, not three copies
    back = unpack(packed)
    assert back["q"].data_ptr() == back["again"].data_ptr()
    assert back["k"].data_ptr() - back["q"].data_ptr() == 16
    back["q"][0, 3] = -1.0
    back["v"].fill_(7.0)
    assert back["again"][0, 3] == -1.0
    assert back["q"].untyped_storage()._cdata == back["v"].untyped_storage()._cdata


def test_only_the_touched_span_of_a_large_storage_is_kept():
    packed = pack({"t": torch.arange(1_000_000)[1000:1010]})
    assert [g.nbytes for g in packed.groups] == [80]


SCALARS = [
    None, True, False, 1, -(2**40), 0.1, -0.0, math.inf, -math.inf, 2 + 3j, "mean", torch.bfloat16, torch.sparse_coo,
    torch.channels_last, torch.device("cpu"), [1, 2], [True, None], (1, 2.0), [], torch.float8_e4m3fn,
]  # fmt: skip


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_scalars_keep_their_type(value):
    back = round_trip(value=value)["value"]
    assert type(back) is type(value)
    assert back == value
    assert repr(back) == repr(value)


def test_nan_and_optional_tensors():
    back = round_trip(x=math.nan, indices=[None, torch.tensor([1])])
    assert math.isnan(back["x"])
    assert back["indices"][0] is None
    assert back["indices"][1].tolist() == [1]


def test_a_zero_dimensional_tensor_is_not_a_number():
    back = round_trip(a=torch.tensor(2.0), b=2.0)
    assert isinstance(back["a"], torch.Tensor)
    assert isinstance(back["b"], float)


DTYPES = [
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "complex32",
    "complex64",
    "complex128",
]


@pytest.mark.filterwarnings("ignore:ComplexHalf:UserWarning")
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_keeps_its_bits(name):
    dtype = getattr(torch, name)
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.arange(8 * size, dtype=torch.uint8) % 2 if name == "bool" else torch.arange(8 * size, dtype=torch.uint8)
    back = round_trip(t=raw.view(dtype))["t"]
    assert back.dtype is dtype
    assert torch.equal(back.clone().view(torch.uint8), raw)


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_sparse(coalesced):
    t = torch.sparse_coo_tensor([[2, 0, 2]], torch.arange(6.0).view(3, 2), (4, 2), check_invariants=True)
    t = t.coalesce() if coalesced else t
    back = round_trip(t=t)["t"]
    assert back.is_coalesced() == coalesced
    assert torch.equal(back._indices(), t._indices())
    assert torch.equal(back._values(), t._values())


def test_conjugate_and_negative_views():
    z = torch.tensor([1 + 2j, 3 - 4j])
    back = round_trip(conj=z.conj(), neg=z.conj().imag)
    assert back["conj"].is_conj()
    assert torch.equal(back["conj"], z.conj())
    assert back["neg"].is_neg()
    assert torch.equal(back["neg"], z.conj().imag)


UNSUPPORTED = {
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    "mkldnn": lambda: torch.ones(2, 2).to_mkldnn(),
    "meta": lambda: torch.ones(2, device="meta"),
    "sparse_csr": lambda: torch.eye(2).to_sparse_csr(),
    "zero tensor": lambda: torch._efficientzerotensor((2,)),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("reason", UNSUPPORTED)
def test_what_cannot_be_kept_says_why(reason):
    packed = pack({"t": UNSUPPORTED[reason]()})
    assert packed.tree["t"] == {"unsupported": f"{reason} tensor"}
    with pytest.raises(TraceError, match="cannot rebuild"):
        unpack(packed)


def test_write_only_contents_are_not_read_and_come_back_poisoned():
    packed = pack({"self": torch.full((3,), 1.25), "src": torch.ones(3)}, write_only=frozenset({"self"}))
    assert packed.data[0] is None
    back = unpack(packed)
    assert back["self"].isnan().all()
    assert back["src"].tolist() == [1.0, 1.0, 1.0]


def test_a_write_only_destination_that_is_also_read_keeps_its_contents():
    x = torch.ones(3)
    assert bytes(pack({"self": x, "src": x}, write_only=frozenset({"self"})).data[0]) == bytes(x.numpy().data)


def test_packing_leaves_a_storage_resizable():
    t = torch.ones(4)
    packed = pack({"t": t})
    t.resize_(1000)
    assert len(packed.data[0]) == 16


HEADERS = {
    "negative shape": lambda h: h["tensors"][0].update(shape=[-1, 3]),
    "size of 2**62": lambda h: h["tensors"][0].update(shape=[1 << 62, 3], stride=[0, 0]),
    "numel overflow": lambda h: h["tensors"][0].update(shape=[1 << 61, 1 << 61], stride=[0, 0]),
    "beyond the span": lambda h: h["tensors"][0].update(shape=[2, 4]),
    "stride beyond the span": lambda h: h["tensors"][0].update(stride=[1 << 40, 1]),
    "offset": lambda h: h["tensors"][0].update(offset=4),
    "misaligned offset": lambda h: h["tensors"][0].update(offset=1),
    "no such group": lambda h: h["tensors"][0].update(group=7),
    "unknown dtype": lambda h: h["tensors"][0].update(dtype="__import__('os')"),
    "dtype is a list": lambda h: h["tensors"][0].update(dtype=["float32"]),
    "missing field": lambda h: h["tensors"][0].pop("stride"),
    "extra field": lambda h: h["tensors"][0].update(extra=1),
    "group too large": lambda h: h["groups"][0].update(nbytes=1 << 50),
    "claims unknown bytes": lambda h: h["groups"][1].update(nbytes=MAX_UNKNOWN_BYTES + 1),
    "no such tensor": lambda h: h["tree"].update(t={"tensor": 5}),
    "unknown tag": lambda h: h["tree"].update(t={"eval": "1"}),
    "bad float": lambda h: h["tree"].update(t={"float": "zz"}),
    "bad device": lambda h: h["tree"].update(t={"device": "a toaster"}),
    "two tags": lambda h: h["tree"].update(t={"float": "0x0p+0", "tensor": 0}),
    "tree is a list": lambda h: h.update(tree=[]),
    "deep tree": lambda h: h["tree"].update(t=nested(5000)),
}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("damage", HEADERS.values(), ids=HEADERS.keys())
def test_hostile_headers_are_refused_in_one_line(damage):
    packed = pack({"t": torch.arange(6.0).view(2, 3), "u": torch.ones(1)}, write_only=frozenset({"u"}))
    header, data = packed.header(), [bytes(packed.data[0]), None]
    header["tensors"] = [dict(t) for t in header["tensors"]]
    damage(header)
    with pytest.raises(TraceError) as error:
        unpack(Packed.from_header(header, data, "file:3"), "file:3")
    assert str(error.value).startswith("file:3")
    assert "\n" not in str(error.value)


def test_a_device_of_the_recording_need_not_exist_here():
    packed = pack({"dtype": torch.int64, "device": torch.device("cpu")})
    for name in ("sim:0", "cuda:3", "npu", "privateuseone:1"):
        packed.tree["device"] = {"device": name}
        assert unpack(packed)["device"] == torch.device("cpu")


def test_an_empty_tensor_may_begin_where_its_memory_ends():
    memory = torch.ones(3)
    packed = pack({"x": memory[3:], "y": memory.as_strided((0, 2), (2, 1), 1 << 40), "z": memory})
    assert [value["tensor"] for value in packed.tree.values()] == [0, 1, 2]
    x, y, z = unpack(packed).values()
    assert x.shape == (0,) and y.shape == (0, 2) and y.stride() == (2, 1) and torch.equal(z, memory)


def test_a_call_that_counts_from_a_storage_has_all_of_it():
    storage = torch.arange(20.0)
    call = {"self": storage[3:9], "size": [2], "stride": [1], "storage_offset": 1}
    packed = pack(call)
    assert [g.nbytes for g in packed.groups] == [80]
    back = unpack(packed)
    assert back["self"].storage_offset() == 3 and back["self"].untyped_storage().nbytes() == 80
    assert torch.equal(torch.as_strided_copy(back["self"], [2], [1], 1), storage[1:3])
    with pytest.raises(RuntimeError, match="storage"):
        torch.as_strided_copy(back["self"], [2], [1], 19)


def test_half_precision_complex_numbers_are_rebuilt_without_a_warning():
    """PyTorch warns once in a process; this one may be over."""
    program = (
        "import torch; from traces.values import pack, unpack; "
        "t = torch.arange(8, dtype=torch.uint8).view(torch.complex32); "
        "assert unpack(pack({'t': t}))['t'].dtype is torch.complex32"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
