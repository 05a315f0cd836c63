"""Categories for OpInfo operators, named as in the published table (TritorX, "Agentic Operator Generation")."""

from __future__ import annotations

from typing import Any

_OF_CLASS = {
    "UnaryUfuncInfo": "Elementwise",
    "BinaryUfuncInfo": "Elementwise",
    "ReductionOpInfo": "Reduction",
    "ShapeFuncInfo": "Shape Manipulation",
    "SpectralFuncInfo": "Other",
}
_OF_PREFIX = {
    "nn.functional.": "Deep Learning",
    "native_": "Deep Learning",
    "_native_": "Deep Learning",
    "_batch_norm": "Deep Learning",
    "_softmax": "Deep Learning",
    "torch.ops.aten.": "Deep Learning",
    "_upsample": "Deep Learning",
    "grid_sampler": "Deep Learning",
    "max_pool": "Deep Learning",
    "linalg.": "Linear Algebra",
    "index_": "Indexing & Selection",
    "scatter": "Indexing & Selection",
    "masked_": "Indexing & Selection",
    "_unsafe_masked": "Indexing & Selection",
    "take": "Indexing & Selection",
}
_MEMBERS = {
    "Elementwise": """
        addcdiv addcmul clamp lerp logaddexp2 where
    """,
    "Deep Learning": """
        log_softmax softmax masked.log_softmax masked.softmax masked.softmin masked.normalize cdist renorm
    """,
    "Linear Algebra": """
        __rmatmul__ addbmm addmm addmv addr baddbmm bmm cholesky cholesky_inverse cholesky_solve cross dot
        einsum geqrf inner kron logdet lu lu_solve lu_unpack matmul matrix_exp mm mv ormqr outer pca_lowrank
        pinverse qr svd svd_lowrank tensordot trace triangular_solve vdot
    """,
    "Reduction": """
        aminmax cov corrcoef cummax cummin cumprod cumsum dist histc histogram histogramdd kthvalue
        logcumsumexp logsumexp masked.cumprod masked.cumsum masked.logaddexp masked.median max median min
        mode nanmedian nanquantile norm quantile std_mean sum_to_size trapezoid trapz cumulative_trapezoid
        var_mean allclose equal bincount
    """,
    "Indexing & Selection": """
        __getitem__ argsort argwhere bucketize diagonal_scatter gather isin msort narrow nonzero
        nonzero_static put searchsorted select select_scatter slice slice_scatter sort topk unique
        unique_consecutive unravel_index as_strided_scatter _segment_reduce
    """,
    "Shape Manipulation": """
        H T mH mT _chunk_cat alias_copy as_strided as_strided_copy atleast_1d atleast_2d atleast_3d
        block_diag broadcast_shapes broadcast_tensors broadcast_to cat chunk column_stack constant_pad_nd
        contiguous diag diag_embed diagflat diagonal diagonal_copy dsplit dstack expand expand_as
        expand_copy fft.fftshift fft.ifftshift flatten flip fliplr flipud hsplit hstack meshgrid movedim
        narrow_copy permute permute_copy ravel repeat_interleave reshape reshape_as resize_ resize_as_ roll
        rot90 split split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack t t_copy tensor_split
        transpose transpose_copy tril triu unbind unbind_copy unflatten unfold unfold_copy unsafe_chunk
        unsafe_split unsqueeze unsqueeze_copy view view_as view_as_complex view_as_real view_copy vsplit
        vstack
    """,
}
_OF_NAME = {name: category for category, names in _MEMBERS.items() for name in names.split()}


def category(info: Any) -> str:
    """Return an OpInfo's category: by its name, by its name's prefix, by its class, or else "Other"."""
    by_prefix = next((c for prefix, c in _OF_PREFIX.items() if info.name.startswith(prefix)), "")
    return _OF_NAME.get(info.name) or by_prefix or _OF_CLASS.get(type(info).__name__, "Other")
