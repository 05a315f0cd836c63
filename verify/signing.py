"""Sign the files in a workspace with a private key that is stored outside it.

A workspace may come from elsewhere, in a cloned repository or as a copy. Its verdicts, samples and kernel
versions count only if this user's own commands wrote them. The signatures prove that; they are HMAC (RFC 2104)
with SHA-256.
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
from traces.program import program_label

_BYTES = 32
_HOME = "XDG_CONFIG_HOME"


def key_path(home: str | None = None) -> Path:
    """Return the path to the key: enablekit/key in `home`, or in ~/.config if `home` is unset or relative."""
    absolute = home is not None and Path(home).is_absolute()
    return (Path(home or "") if absolute else Path.home() / ".config") / "enablekit" / "key"


def sign(*parts: str) -> str:
    """Return the signature for these texts, in this order, as 32 hexadecimal digits.

    Raises:
        UserError: The key file is not a valid key, or other users can read it.
    """
    message = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
    return hmac.digest(_key(os.environ.get(_HOME)), message, "sha256").hex()[:32]


def is_signed(signature: object, *parts: str) -> bool:
    """Return True if this user's commands signed these texts."""
    return isinstance(signature, str) and signature.isascii() and hmac.compare_digest(signature, sign(*parts))


@cache
def _key(home: str | None) -> bytes:
    """Return the key, and create it if needed; if it cannot be stored, return one for this process only."""
    try:
        path = key_path(home)
        if not path.is_file():
            _make(path)
        key = path.read_bytes()
        shared = path.stat().st_mode & 0o077
    except (OSError, RuntimeError) as error:  # Path.home() raises RuntimeError for a user without a home directory
        sys.stderr.write(
            f"{program_label()}: the key that signs verdicts cannot be kept ({error}), so later commands do not "
            f"believe the verdicts of this one; make that a writable directory, or name another with {_HOME}\n"
        )
        return secrets.token_bytes(_BYTES)
    if shared:
        raise UserError(f"{path}: others can read this key; keep it to yourself: chmod 600 {path}")
    if len(key) != _BYTES:
        raise UserError(f"{path}: not a key of {_BYTES} bytes; remove the file, and a new one is made")
    return key


def _make(path: Path) -> None:
    """Write a new key that only this user can read; if several processes do so at once, the first one wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # created with mode 0600
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(file.name, path)
