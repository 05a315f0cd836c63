"""Pydantic models that validate the fields of a platform's YAML file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from traces.errors import did_you_mean
from verify.limits import ELEMENTS, PRECISIONS
from verify.lint.profile import DEFAULT, load_profile

_STRICT = ConfigDict(extra="forbid", strict=True)
# Host memory with which a child can compile and run the smallest cases.
_LEAST_MEMORY = 1 << 25
# A warp's threads that Triton's own backends compile for.
_WARP_SIZES = {"cuda": (32,), "hip": (32, 64)}


def _power_of_two(value: int) -> int:
    if value < 0 or value & (value - 1):
        raise ValueError("has to be a power of two")
    return value


def _enough(value: int) -> int:
    if value < _LEAST_MEMORY:
        raise ValueError(f"too little to run a kernel; at least {_LEAST_MEMORY}")
    return value


def _module(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError("has to be the name of a Python module, such as torch_mychip")
    return name


class TargetFields(BaseModel):
    """Processor to compile for; the fields are those of verify.platforms.Target."""

    model_config = _STRICT
    backend: str
    arch: int | str
    warp_size: PositiveInt
    shared_bytes: PositiveInt
    options: dict[Literal["num_warps", "num_stages", "num_ctas", "maxnreg"], PositiveInt] = {}

    @model_validator(mode="after")
    def _compiled(self) -> Self:
        sizes = _WARP_SIZES.get(self.backend, (self.warp_size,))
        if self.warp_size not in sizes:
            raise ValueError(f"warp_size {self.warp_size}: backend {self.backend} has {' or '.join(map(str, sizes))}")
        return self


def _function(name: str) -> str:
    kernel = load_profile(DEFAULT).kernel
    constants = ("tl.pointer_type", "tl.PropagateNan")
    functions = sorted(f for f in kernel.names - kernel.annotations if not f.startswith(constants))
    if name not in functions:
        suggestion = did_you_mean(name, functions) or ";"
        raise ValueError(f"unknown function{suggestion} choose from {', '.join(functions)}")
    return name


_Sizes = Annotated[list[PositiveInt], Field(min_length=3, max_length=3)]  # M, N and K
_Warps = Annotated[PositiveInt, AfterValidator(_power_of_two)]
_Dtypes = Annotated[list[Literal[*ELEMENTS]], Field(min_length=1)]  # type: ignore[valid-type]
_Function = Annotated[str, AfterValidator(_function)]


class LimitFields(BaseModel):
    """Limits of a chip; the fields are those of verify.limits.ChipLimits."""

    model_config = _STRICT
    grid: Annotated[list[PositiveInt], Field(min_length=1, max_length=3)] = []
    block_elements: PositiveInt = 1
    num_warps: Annotated[list[_Warps], Field(min_length=1)] = []
    num_stages: Annotated[list[PositiveInt], Field(min_length=1)] = []
    functions: dict[_Function, _Dtypes] = {}
    dot_dtypes: _Dtypes = []
    dot_smallest: _Sizes = []
    dot_largest: _Sizes = []
    dot_precision: Literal[*PRECISIONS] = "ieee"  # type: ignore[valid-type]
    flush_denormals: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if any(low > high for low, high in zip(self.dot_smallest, self.dot_largest, strict=False)):
            raise ValueError("dot_smallest has a size above that of dot_largest")
        return self


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
    limits: LimitFields = LimitFields()
    compile_seconds: PositiveFloat | PositiveInt = 1
    execute_seconds: PositiveFloat | PositiveInt = 1
    memory_bytes: Annotated[int, AfterValidator(_enough)] = _LEAST_MEMORY
    device: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = ""
    module: Annotated[str, AfterValidator(_module)] = ""
    dispatch_key: Literal["PrivateUse1", "HPU", "MTIA", "XPU", "CUDA"] = "PrivateUse1"
    launcher: Literal["triton", "interpreter"] = "triton"
    device_files: list[str] = []
    system_files: list[str] = []
    environment: list[str] = []

    @classmethod
    def known(cls) -> list[str]:
        """Return the names of all fields, including those of targets and limits."""
        return [*cls.model_fields, *TargetFields.model_fields, *LimitFields.model_fields]
