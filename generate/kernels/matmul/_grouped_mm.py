"""aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) ->
    Tensor

Groups end where `offs` says, which has to rise: of rows of the first, of columns of the second, or of what both are
summed over. A program finds its group from how many tiles each has; what is in no group is not written, as in ATen.
"""

import torch
import triton
import triton.language as tl
from blocks.matmul import launch_matmul, matmul_tile, tile_product
from blocks.offsets import integer_values, integers, stride_arguments, stride_values

OVERLOADS = ("aten::_grouped_mm",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def group_bounds(offs_ptr, stride, group, mask, most):
    """Where groups start and end."""
    place = group.to(tl.int64) * stride
    start = tl.load(offs_ptr + place - stride, mask=mask & (group > 0), other=0)
    end = tl.load(offs_ptr + place, mask=mask, other=0)
    return tl.minimum(tl.maximum(start, 0), most), tl.minimum(tl.maximum(end, 0), most)


@triton.jit
def group_of_tile(offs_ptr, stride, groups, tile, most, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """Of a tile of rows: its group, its first row and the end of the group, which is 0 where there is no such tile."""
    before, group, first, last = tile * 0, tile * 0, tile * 0, tile * 0
    for at in range(0, groups, LANES):
        g = at + tl.arange(0, LANES)
        start, end = group_bounds(offs_ptr, stride, g, g < groups, most)
        tiles = tl.cdiv(tl.maximum(end - start, 0), BLOCK)
        place = tile - (before + tl.cumsum(tiles, 0) - tiles)
        here = (place >= 0) & (place < tiles)
        group += tl.sum(tl.where(here, g, 0), 0)
        first += tl.sum(tl.where(here, start + place * BLOCK, 0), 0)
        last += tl.sum(tl.where(here, end, 0), 0)
        before += tl.sum(tiles, 0)
    return group, first, last


@triton.jit
def grouped_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    offs_ptr,
    sizes,
    strides,
    TILE: tl.constexpr,
    DEEP: tl.constexpr,
    EVEN: tl.constexpr,
    INSIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    LANES: tl.constexpr,
):
    """A tile of the output. DEEP: groups are of what is summed over, and there is a matrix for each; else of rows.
    INSIDE: no tile reaches beyond the columns.

    strides: of a by row and column, of b and the output by group, row and column.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_K: tl.constexpr = TILE[2]
    M, N, K, groups, offs_stride = integer_values(sizes, PLAIN)
    a_stride, b_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    out_stride = stride_values(strides[2], PLAIN)
    across = tl.cdiv(N, BLOCK_N)
    row_tile = tl.program_id(0) // across
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    if DEEP:
        down = tl.cdiv(M, BLOCK_M)
        group = row_tile // down
        first, last = row_tile % down * BLOCK_M, M
        start, end = group_bounds(offs_ptr, offs_stride, group, True, K)
    else:
        group, first, last = group_of_tile(offs_ptr, offs_stride, groups, row_tile, M, BLOCK_M, LANES)
        start, end = 0, K
        b_ptr += group.to(tl.int64) * b_stride[0]
    rows = first.to(tl.int64) + tl.arange(0, BLOCK_M)
    ks = tl.arange(0, BLOCK_K)
    a_ptr += tl.minimum(rows, M - 1)[:, None] * a_stride[0]
    wrapped = cols if INSIDE else cols % N  # by % what is contiguous stays so: 16 bytes are read at a time
    b_ptr += wrapped[None, :] * b_stride[2]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    if last > first:
        for at in range(start, end, BLOCK_K):
            k = (at + ks).to(tl.int64)
            if EVEN:
                a = tl.load(a_ptr + k[None, :] * a_stride[1])
                b = tl.load(b_ptr + k[:, None] * b_stride[1])
            else:
                a = tl.load(a_ptr + k[None, :] * a_stride[1], mask=(k < end)[None, :], other=0.0)
                b = tl.load(b_ptr + k[:, None] * b_stride[1], mask=(k < end)[:, None], other=0.0)
            acc = tile_product(a, b, acc)
    if DEEP:
        out_ptr += group.to(tl.int64) * out_stride[0]
    out_ptr += rows[:, None] * out_stride[1] + cols[None, :] * out_stride[2]
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < last)[:, None] & (cols < N)[None, :])


def expect_matrix(x):
    """Raises RuntimeError where rows or columns do not begin at multiples of 16 bytes, as ATen."""
    rows, columns = x.stride()[-2:]
    if rows == 1 and columns >= max(1, x.shape[-2]):
        step = columns
    elif columns == 1 and rows >= max(1, x.shape[-1]):
        step = rows
    else:
        raise RuntimeError(f"a matrix of strides {x.stride()}")
    if step * x.element_size() % 16:
        raise RuntimeError(f"rows of {step} elements")


def expect_operands(a, b, offs):
    """Raises RuntimeError as ATen."""
    if a.dim() not in (2, 3) or b.dim() not in (2, 3) or a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"matrices {tuple(a.shape)} of {a.dtype} and {tuple(b.shape)} of {b.dtype}")
    expect_matrix(a)
    expect_matrix(b)
    if (offs is None) != (a.dim() == b.dim() == 3) or (offs is None and a.shape[0] != b.shape[0]):
        raise RuntimeError(f"groups of {tuple(a.shape)} and {tuple(b.shape)}, offsets {offs is not None}")
    if offs is not None and (offs.dim() != 1 or offs.dtype != torch.int32):
        raise RuntimeError(f"offsets {tuple(offs.shape)} of {offs.dtype}")
    for x in (a, b):
        if a.dim() != b.dim() and x.dim() == 3 and x.shape[0] != offs.shape[0]:
            raise RuntimeError(f"{offs.shape[0]} groups of {x.shape[0]} matrices")


def launch_groups(a, b, out, offs, half):
    """a: [M, K]. b: [groups, K, N] and out: [M, N]; or b: [K, N] and out: [groups, M, N]."""
    (M, K), N, groups, deep = a.shape, b.shape[-1], offs.shape[0], b.dim() == 2
    height = M if deep else triton.cdiv(M, groups)
    tile = matmul_tile(groups, height, N, K, half, (128, 128) if half else (64, 64))
    small = max(a.numel(), b.numel(), out.numel()) < 4096
    down = groups * triton.cdiv(M, tile[0]) if deep else (M + groups * (tile[0] - 1)) // tile[0]
    strides = [(0,) * (3 - x.dim()) + x.stride() for x in (b, out)]
    grouped_kernel[(down * triton.cdiv(N, tile[1]),)](
        a,
        b,
        out,
        offs,
        integers((M, N, K, groups, offs.stride(0)), small),
        tuple([stride_arguments(stride, small) for stride in (a.stride(), *strides)]),
        TILE=tile[:3],
        DEEP=deep,
        EVEN=not small and not deep and K % tile[2] == 0,
        INSIDE=not small and N % tile[1] == 0,
        PLAIN=small,
        LANES=min(max(triton.next_power_of_2(groups), 16), 1024),
        num_warps=tile[3],
        num_stages=3,
    )


def wrapper(self, mat2, offs=None, bias=None, out_dtype=None):
    if self.dtype not in (torch.bfloat16, torch.float16, torch.float32) or out_dtype not in (None, self.dtype):
        raise RuntimeError(f"products of {self.dtype} in {out_dtype}")
    if bias is not None:
        raise RuntimeError("a bias")
    expect_operands(self, mat2, offs)
    shape = [offs.shape[0]] if self.dim() == mat2.dim() == 2 else [self.shape[0]] if offs is None else []
    out = torch.empty((*shape, self.shape[-2], mat2.shape[-1]), dtype=self.dtype, device=self.device)
    half = self.dtype != torch.float32
    if not out.numel():
        return out
    if offs is None:
        (B, M, K), N = self.shape, mat2.shape[2]
        tile = matmul_tile(B, M, N, K, half, (128, 128) if half else (64, 64))
        launch_matmul(self, mat2, None, out, (0, 1), tile)
    elif self.dim() == 3:
        launch_groups(mat2.transpose(0, 1), self.transpose(1, 2), out.transpose(0, 1), offs, half)
    elif offs.shape[0]:
        launch_groups(self, mat2, out, offs, half)
    return out
