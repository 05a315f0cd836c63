"""Signatures of what a workspace keeps, by a key of the user's own that lies outside of it.

A workspace may come from elsewhere: in a cloned repository, or by a copy. Its verdicts, samples and versions of kernels
count only if this user's own commands wrote them, which their signatures (HMAC, RFC 2104, with SHA-256) show.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from traces import UserError

_BYTES = 32
_HOME = "XDG_CONFIG_HOME"


def key_path(home: str | None = None) -> Path:
    """Return where the key is kept: enablekit/key in `home`, by default and if that is relative in ~/.config."""
    absolute = home is not None and Path(home).is_absolute()
    return (Path(home or "") if absolute else Path.home() / ".config") / "enablekit" / "key"


def sign(*parts: str) -> str:
    """Return the signature of these texts in this order: 32 hexadecimal digits.

    Raises UserError for a file in the place of the key that is none.
    """
    message = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
    return hmac.digest(_key(os.environ.get(_HOME)), message, "sha256").hex()[:32]


def is_signed(signature: object, *parts: str) -> bool:
    """Return True if this user's commands signed these texts."""
    return isinstance(signature, str) and signature.isascii() and hmac.compare_digest(signature, sign(*parts))


@cache
def _key(home: str | None) -> bytes:
    """Return the key, which is made if there is none; where it cannot be kept, one that this process forgets."""
    try:
        place = key_path(home)
        if not place.is_file():
            _make(place)
        key = place.read_bytes()
        shared = place.stat().st_mode & 0o077
    except (OSError, RuntimeError) as error:  # Path.home() raises RuntimeError for a user without a home
        sys.stderr.write(
            f"enable: the key that signs verdicts cannot be kept ({error}), so later commands do not believe what this "
            f"one finds; make that a directory that can be written to, or name another with {_HOME}\n"
        )
        return secrets.token_bytes(_BYTES)
    if shared:
        raise UserError(f"{place}: others can read this key; keep it to yourself: chmod 600 {place}")
    if len(key) != _BYTES:
        raise UserError(f"{place}: not a key of {_BYTES} bytes; remove the file, and a new one is made")
    return key


def _make(place: Path) -> None:
    """Write a new key that only this user can read; of several processes that do so at once, the first is believed."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent) as file:  # is made with mode 0600
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(file.name, place)
