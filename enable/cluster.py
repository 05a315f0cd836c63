"""Connect to a Ray cluster: the named one, or a new one on this machine."""

from __future__ import annotations

import os
from typing import Any

from traces import UserError

RETRIES = 3  # retries of work whose worker died


def connected(address: str | None = None, workers: int | None = None) -> Any:
    """Connect to a cluster and return the module `ray`.

    Args:
        address: Address of a cluster; by default RAY_ADDRESS, or else a cluster is started on this machine.
        workers: Number of cores for a cluster started here.

    Raises:
        UserError: Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError:
        raise UserError("the ray engine needs Ray: pip install 'enablekit[ray]'") from None
    if not ray.is_initialized():
        address = address or os.environ.get("RAY_ADDRESS")
        location = {"address": address} if address else {"num_cpus": workers}
        try:
            ray.init(**location, include_dashboard=False, log_to_driver=False, logging_level="WARNING")
        except (ConnectionError, ValueError, RuntimeError) as error:
            message = " ".join(str(error).split())[:200]
            raise UserError(
                f"address {address or 'of this machine'!r}: no Ray cluster ({message}); see: ray status"
            ) from error
    return ray
