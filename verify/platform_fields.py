"""Pydantic models that validate the fields of a platform's YAML file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

_STRICT = ConfigDict(extra="forbid", strict=True)


def _power_of_two(value: int) -> int:
    if value < 0 or value & (value - 1):
        raise ValueError("has to be a power of two, in bytes, or 0")
    return value


class TargetFields(BaseModel):
    """Processor to compile for; the fields are those of verify.platforms.Target."""

    model_config = _STRICT
    backend: str
    arch: int | str
    warp_size: PositiveInt
    shared_bytes: PositiveInt


class Fields(BaseModel):
    """Fields that a platform file may contain; they are those of verify.platforms.Platform.

    Attributes:
        base: Platform from which unset fields are inherited, by name or path.
        lint: Dialect, by name, by path or inline.
    """

    model_config = _STRICT
    base: str
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")] = ""
    description: str = ""
    targets: list[TargetFields] = []
    lint: str | dict[str, Any] = ""
    alignment: Annotated[int, AfterValidator(_power_of_two)] = 0
    compile_seconds: PositiveFloat | PositiveInt = 1
    execute_seconds: PositiveFloat | PositiveInt = 1
    memory_bytes: PositiveInt = 1
    device: str = ""
    device_files: list[str] = []
    system_files: list[str] = []
    environment: list[str] = []

    @classmethod
    def known(cls) -> list[str]:
        """Return the names of all fields, including those of a target."""
        return [*cls.model_fields, *TargetFields.model_fields]
