"""A Ray cluster: the one that is named, or one of this machine alone."""

from __future__ import annotations

import os
from typing import Any

from traces import UserError

RETRIES = 3  # of work whose worker died


def connected(address: str | None = None, workers: int | None = None) -> Any:
    """The module `ray`, connected. address: of a cluster; without it RAY_ADDRESS counts, or else one is started here.

    workers: cores of that. Raises UserError where Ray is not installed or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError:
        raise UserError("the ray engine needs Ray: pip install 'enablekit[ray]'") from None
    if not ray.is_initialized():
        address = address or os.environ.get("RAY_ADDRESS")
        where = {"address": address} if address else {"num_cpus": workers}
        try:
            ray.init(**where, include_dashboard=False, log_to_driver=False, logging_level="WARNING")
        except (ConnectionError, ValueError, RuntimeError) as error:
            told = " ".join(str(error).split())[:200]
            raise UserError(
                f"address {address or 'of this machine'!r}: no Ray cluster ({told}); see: ray status"
            ) from error
    return ray
