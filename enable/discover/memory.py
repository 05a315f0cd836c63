"""Catalogue entries for loads and stores, alignment, block sizes, atomics and descriptors."""

from __future__ import annotations

from collections.abc import Iterator

from enable.discover.entries import DTYPES, FLOATS, CatalogueEntry, copy_of, entry, flat, numbers

ONE_D = (1, 2, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
TWO_D = (1, 2, 8, 32, 128, 256)
ALIGNMENTS = (64, 32, 16, 8, 4, 2, 1)  # bytes
SCOPES, ORDERS = ("cta", "gpu", "sys"), ("relaxed", "acquire", "release", "acq_rel")
COUNTERS = {"float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32", "uint64"}
MEMORY_DTYPES = ("int8", "float16", "float32")

# form -> statements that set z, and the store's offsets
FORMS = {
    "mask": ("z = tl.load(x_ptr + i, mask=i < N - 3)", "i, z, mask=i < N - 3"),
    "mask and other": ("z = tl.load(x_ptr + i, mask=i % 3 == 0, other=1)", "i, z"),
    "runtime mask": ("z = tl.load(x_ptr + i, mask=i < n, other=0)", "i, z, mask=i < n"),
    "scalar": ("z = tl.load(x_ptr + 3)", "i, z"),
    "stride": ("z = tl.load(x_ptr + i * n)", "i, z"),
    "reversed": ("z = tl.load(x_ptr + (N - 1 - i))", "i, z"),
    "offset of one element": ("z = tl.load(x_ptr + 1 + i)", "i, z"),
    "int64 offsets": ("z = tl.load(x_ptr + i.to(tl.int64) * 2)", "i.to(tl.int64), z"),
    "two dimensions": (
        "r, c = tl.arange(0, 8)[:, None], tl.arange(0, N // 8)[None, :]\nz = tl.load(x_ptr + r * (N // 8) + c)",
        "c * 8 + r, z",
    ),
    "two masked dimensions": (
        "r, c = tl.arange(0, 8)[:, None], tl.arange(0, N // 8)[None, :]\n"
        "z = tl.load(x_ptr + r * n + c, mask=(r < 7) & (c < n), other=0)",
        "r * (N // 8) + c, z",
    ),
    "cache modifier": ('z = tl.load(x_ptr + i, cache_modifier=".cg")', 'i, z, cache_modifier=".cs"'),
    "eviction policy": ('z = tl.load(x_ptr + i, eviction_policy="evict_last")', "i, z"),
    "volatile": ("z = tl.load(x_ptr + i, volatile=True)", "i, z"),
}


def entries() -> Iterator[CatalogueEntry]:
    """Yield the entries."""
    for dtype in DTYPES:
        yield flat("dtypes", "copy", "x", dtype)
    for dtype in MEMORY_DTYPES:
        yield from _accesses(dtype)
    yield from _sizes()
    yield from _atomics()
    yield from _descriptors()


def _accesses(dtype: str) -> Iterator[CatalogueEntry]:
    needs = {"needs": [copy_of(dtype)]}
    for form, (load, store) in FORMS.items():
        tensors = {"x_ptr": numbers(dtype)}
        if "n" in load.replace("(", " ").replace(")", " ").replace(",", " ").split():
            tensors["n"] = "5"  # no multiple of 16, which the compiler would use
        tensors["out_ptr"] = f"torch.zeros(N, dtype=torch.{dtype})"
        body = f"i = tl.arange(0, N)\n{load}\ntl.store(out_ptr + {store})"
        yield entry("memory", "access", body, tensors, form={"form": form, "dtype": dtype}, scale=8, **needs)
    index = {"p_ptr": "(k * 5 % N).to(torch.int32)", "x_ptr": numbers(dtype)}
    out = {"out_ptr": f"torch.zeros(N, dtype=torch.{dtype})"}
    gather = "i = tl.arange(0, N)\np = tl.load(p_ptr + i)\ntl.store(out_ptr + i, tl.load(x_ptr + p))"
    scatter = "i = tl.arange(0, N)\np = tl.load(p_ptr + i)\ntl.store(out_ptr + p, tl.load(x_ptr + i))"
    details = {"needs": [copy_of(dtype), copy_of("int32")]}
    yield entry("memory", "gather load", gather, {**index, **out}, form={"dtype": dtype}, **details)
    yield entry("memory", "scatter store", scatter, {**index, **out}, form={"dtype": dtype}, **details)


def _sizes() -> Iterator[CatalogueEntry]:
    needs = {"needs": [copy_of("float32")]}
    tensors = {"x_ptr": numbers("float32"), "out_ptr": "torch.zeros(N)"}
    for size in ONE_D:
        body = "i = tl.arange(0, N)\ntl.store(out_ptr + i, tl.load(x_ptr + i) + 1)"
        yield entry("sizes", "block", body, tensors, form={"elements": size}, meta={"N": size}, **needs)
    tensors = {"x_ptr": numbers("float32"), "out_ptr": "torch.zeros(N * N)"}
    for size in TWO_D:
        body = (
            "i = tl.arange(0, N)\nat = i[:, None] * N + i[None, :]\n"
            "tl.store(out_ptr + at, tl.trans(tl.load(x_ptr + at)))"
        )
        form = {"rows": size, "columns": size}
        yield entry("sizes", "square block", body, tensors, form=form, meta={"N": size}, scale=size, **needs)
    tensors = {"x_ptr": "k.to(torch.int8)", "out_ptr": "torch.zeros(N, dtype=torch.int8)"}
    for size in ALIGNMENTS:
        body = f"i = tl.arange(0, N)\ntl.store(out_ptr + i, tl.load(x_ptr + {size} + i))"
        yield entry("memory", "alignment", body, tensors, form={"bytes": size}, scale=2, needs=[copy_of("int8")])
    tensors = {"x_ptr": numbers("float32"), "out_ptr": "torch.zeros(N * 8)"}
    for grid in ((8,), (4, 2), (2, 2, 2)):
        identity = "tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))"
        body = f"i = ({identity}) * N + tl.arange(0, N)\ntl.store(out_ptr + i, tl.load(x_ptr + i) * 2)"
        yield entry("sizes", "grid", body, tensors, form={"dimensions": len(grid)}, grid=grid, scale=8, **needs)


def _atomics() -> Iterator[CatalogueEntry]:
    kinds = {
        **dict.fromkeys(("add", "xchg"), COUNTERS),
        **dict.fromkeys(("max", "min"), COUNTERS - {"float16", "bfloat16"}),
        **dict.fromkeys(("and", "or", "xor"), {"int32", "int64", "uint32", "uint64"}),
        "cas": {"int32", "int64"},
    }
    for kind, dtypes in kinds.items():
        for dtype in sorted(dtypes):
            yield _atomic(kind, dtype)
    for kind, dtype in (("add", "float32"), ("add", "int32"), ("cas", "int32")):
        for scope in SCOPES:
            for order in ORDERS:
                yield _atomic(kind, dtype, scope=scope, sem=order)
    masked = "i = tl.arange(0, N)\ntl.atomic_add(cell_ptr + i % 4, tl.load(x_ptr + i), mask=i < n)"
    tensors = {"x_ptr": "k.to(torch.int32)", "n": "51", "cell_ptr": "torch.zeros(N, dtype=torch.int32)"}
    form = {"dtype": "int32", "form": "mask and shared cells"}
    yield entry("atomics", "tl.atomic_add", masked, tensors, form=form, needs=["tl.atomic_add[dtype=int32]"])


def _atomic(kind: str, dtype: str, **options: str) -> CatalogueEntry:
    words = "".join(f', {name}="{value}"' for name, value in options.items())
    values = "x, x" if kind == "cas" else "x"
    body = (
        f"i = tl.arange(0, N)\nx = tl.load(x_ptr + i)\n"
        f"tl.store(out_ptr + i, tl.atomic_{kind}(cell_ptr + i, {values}{words}))"
    )
    zeros = f"torch.zeros(N, dtype=torch.{dtype})"
    tensors = {"x_ptr": numbers(dtype), "cell_ptr": zeros, "out_ptr": zeros}
    form = {"dtype": dtype, **options}
    needs = [copy_of(dtype), *([f"tl.atomic_{kind}[dtype={dtype}]"] if options else [])]
    return entry("atomics", f"tl.atomic_{kind}", body, tensors, form=form, needs=needs, shrinks=True)


def _descriptors() -> Iterator[CatalogueEntry]:
    load = "d = tl.make_tensor_descriptor(x_ptr, [n, n], [N, 1], [16, 32])\nz = d.load([8, 16])"
    store = "e = tl.make_tensor_descriptor(out_ptr, [N, N], [N, 1], [16, 32])\ne.store([0, 0], z)"
    loop = (
        "d = tl.make_tensor_descriptor(x_ptr, [n, n], [N, 1], [16, 32])\nz = tl.zeros([16, 32], tl.float32)\n"
        "for j in range(0, n, 16):\n    z += d.load([j, 0])"
    )
    for dtype in (*FLOATS, "int8", "int32"):
        tensors = {"x_ptr": numbers(dtype), "out_ptr": f"torch.zeros(N * N, dtype=torch.{dtype})", "n": "N - 5"}
        details = {"scale": 64, "needs": [copy_of(dtype)]}
        form = {"dtype": dtype}
        yield entry("descriptors", "tl.make_tensor_descriptor", f"{load}\n{store}", tensors, form=form, **details)
    tensors = {"x_ptr": numbers("float32"), "out_ptr": "torch.zeros(N * N)", "n": "N"}
    for name, body in (("loop", f"{loop}\n{store}"), ("atomic_add", f"{load}\n{store.replace('store', 'atomic_add')}")):
        needs = ["tl.make_tensor_descriptor[dtype=float32]"]
        yield entry(
            "descriptors", "tl.make_tensor_descriptor", body, tensors, form={"form": name}, scale=64, needs=needs
        )
