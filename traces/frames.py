"""Export to a pandas DataFrame, one row for each stored call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from traces.records import CallRecord, Signature
    from traces.store import Trace

# Columns of the DataFrame, with their dtypes.
COLUMNS = {
    **dict.fromkeys(("id", "seq", "step"), "int64"),
    **dict.fromkeys(("phase", "module", "overload", "kind", "signature"), "str"),
    **dict.fromkeys(("calls", "bytes"), "int64"),
    **dict.fromkeys(("level", "tensor_dtypes", "tensor_shapes", "arguments"), "str"),
}


def frame_of(trace: Trace, records: Iterable[CallRecord]) -> pd.DataFrame:
    """Return a DataFrame with one row for each record and the columns in COLUMNS."""
    import pandas as pd

    rows = [row(record, trace.signatures[record.signature]) for record in records]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def row(record: CallRecord, signature: Signature) -> dict[str, Any]:
    """Return the row for one stored call.

    `calls` counts its signature's calls in all steps. `bytes` is the size of its inputs, with aliased bytes counted
    once. `tensor_dtypes` and `tensor_shapes` list its tensors in argument order.
    """
    tensors = record.header["tensors"]
    return {
        **{name: getattr(record, name) for name in ("id", "seq", "step", "phase", "module", "overload", "kind")},
        "signature": record.signature,
        "calls": signature.calls,
        "bytes": record.nbytes,
        "level": record.level,
        "tensor_dtypes": " ".join(t["dtype"] for t in tensors),
        "tensor_shapes": " ".join("x".join(map(str, t["shape"])) or "-" for t in tensors),
        "arguments": signature.arguments,
    }
