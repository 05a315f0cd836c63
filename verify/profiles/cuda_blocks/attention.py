"""Attention in half precision on sm_90 goes through `grouped.py`, where tensor descriptors can tell of its tensors."""

import math

from blocks.attention import tiled_attention
from blocks.grouped import grouped_attention, groups_serve


def attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32=False, empty=math.inf):
    """In the place of the plain one: by groups of warps where they serve."""
    if groups_serve(inputs, outs, causal, dropout_p, scale, fp32):
        grouped_attention(inputs, outs, states, causal, scale, empty)
    else:
        tiled_attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32, empty)
