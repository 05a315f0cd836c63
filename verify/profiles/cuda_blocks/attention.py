"""Attention on sm_90, through `grouped.py` in half precision if tensor descriptors can describe its tensors.

It replaces the library's block with the same name.
"""

import math

from blocks.attention import tiled_attention
from blocks.grouped import grouped_attention, groups_serve


def attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32=False, empty=math.inf):
    """Compute attention with the grouped kernel if it supports the call, else with the library's tiled kernel."""
    if groups_serve(inputs, outs, causal, dropout_p, scale, fp32):
        grouped_attention(inputs, outs, states, causal, scale, empty)
    else:
        tiled_attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32, empty)
