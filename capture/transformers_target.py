"""Models from the `transformers` library, built from their config with random weights and random inputs.

Text, images and audio are generated from the parameter names of `forward` and from the config. The loss is the model's
own if its labels can be generated (language models and classifiers), otherwise the mean magnitude of its first output.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any

import torch
from torch import Tensor

from capture.factories import StepProgram, foreign, trained
from capture.libraries import COMMON, common_settings, import_library, make_optimizer, mean_magnitude
from capture.settings import Setting, nearest, of_default, parse
from traces.errors import UserError

SEQUENCE = 128  # tokens, if the model accepts that many
_SAMPLES = 16_000  # audio samples: one second
_SIDE = 224  # pixels, if the config does not say
_TOKEN_HEADS = ("LMHeadModel", "CausalLM", "ConditionalGeneration", "MaskedLM")
_CLASS_HEADS = ("SequenceClassification", "ImageClassification", "VideoClassification", "AudioClassification")


def load_transformers(
    target: str, name: str, texts: Mapping[str, str], device: str
) -> tuple[dict[str, Any], StepProgram]:
    """Build a model by its class name.

    Args:
        target: Name of the target, for messages.
        name: Class name.
        texts: Settings for its config and for the training step, as text.
        device: Device to build on.

    Returns:
        tuple: All settings, and the program.

    Raises:
        UserError: If a setting is invalid or the model cannot be built.
    """
    kind = _model_class(target, name)
    values = parse(target, _settings(target, kind), texts)
    for_training = {key: values.pop(key) for key in (*COMMON, "sequence") if key in values}
    with foreign(f"{target}: the config"):
        config = kind.config_class(**values)
    limit = getattr(config.get_text_config(), "max_position_embeddings", None)
    sequence = min(SEQUENCE, limit) if isinstance(limit, int) and limit > 0 else SEQUENCE
    settings = common_settings(target, for_training, sequence=sequence)
    torch.manual_seed(settings["seed"])
    with foreign(f"{target}: building the model"):
        model = kind._from_config(config).to(device).train()
    batches = _batches(target, model, settings, device)
    return {**settings, **values}, trained(target, model, batches, _loss, make_optimizer(model, settings))


def _model_class(target: str, name: str) -> Any:
    transformers = import_library("transformers", "hf")
    if name not in dir(transformers):
        near = nearest(name, [n for n in dir(transformers) if n[:1].isupper()])
        hint = f"nearest are {', '.join(near)}" if near else "write it like transformers:GPT2LMHeadModel"
        raise UserError(f"transformers has no {name!r}; {hint}")
    with foreign(f"importing {target}"):
        kind = getattr(transformers, name)
    if getattr(kind, "config_class", None) is None or not hasattr(kind, "_from_config"):
        raise UserError(f"{target} is no model with a config; name a class such as transformers:GPT2LMHeadModel")
    return kind


def _settings(target: str, kind: Any) -> dict[str, Setting]:
    with foreign(f"{target}: the default config"):
        config = kind.config_class()
        defaults = config.to_dict()
    aliases = {alias: defaults.get(name) for alias, name in config.attribute_map.items()}
    extra = {"num_labels": config.num_labels, "attn_implementation": "sdpa", **_implementations(config)}
    annotations: dict[str, object] = {}
    for owner in reversed(type(config).__mro__):  # a subclass may redeclare a field of its bases
        annotations |= inspect.get_annotations(owner)
    annotations = {name: annotation for name, annotation in annotations.items() if isinstance(annotation, UnionType)}
    values = {**defaults, **aliases, **extra}
    known = {name: of_default(value, annotations.get(name)) for name, value in values.items() if name[0] != "_"}
    return {**COMMON, "sequence": Setting(int, SEQUENCE), **{k: v for k, v in known.items() if k not in COMMON}}


def _implementations(config: Any) -> dict[str, Any]:
    """Return choices such as `experts_implementation`, which a config takes by name and stores in properties."""
    kind = type(config)
    names = [n for n in dir(kind) if n.endswith("_implementation") and isinstance(getattr(kind, n), property)]
    return {name.removeprefix("_"): getattr(config, name) for name in names}


def _loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    output = model(**batch)
    loss = getattr(output, "loss", None)
    return mean_magnitude(output) if loss is None else loss


def _batches(target: str, model: Any, settings: dict[str, Any], device: str) -> Iterator[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(settings["seed"])
    taken = inspect.signature(model.forward).parameters
    while True:
        inputs = _Inputs(model, settings, generator).make(set(taken))
        missing = [p.name for p in taken.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        missing = [name for name in missing if name not in inputs]
        if missing:
            raise UserError(f"{target}: its input {missing[0]!r} cannot be made up; write a factory MODULE:FACTORY")
        yield {name: tensor.to(device) for name, tensor in inputs.items()}


class _Inputs:
    """Generator of random inputs for one batch.

    The settings contain `batch` and `sequence`, the sizes B and S below, and `image`.
    """

    def __init__(self, model: Any, settings: Mapping[str, Any], generator: torch.Generator) -> None:
        self._model, self._config, self._generator = model, model.config, generator
        self._batch, self._sequence, self._side = settings["batch"], settings["sequence"], settings["image"]

    def make(self, taken: set[str]) -> dict[str, Tensor]:
        """Return inputs for the parameter names in `taken`."""
        inputs: dict[str, Tensor] = {}
        if "input_ids" in taken:
            inputs["input_ids"] = self._integers(self._vocabulary(), self._sequence)  # [B, S]
            if "attention_mask" in taken:
                inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if "pixel_values" in taken and not self._has_image_tokens():
            inputs["pixel_values"] = self._floats(*self._image())  # [B, C, H, W]
        for name in {"input_features", "input_values"} & taken:
            if name == self._model.main_input_name:
                inputs[name] = self._floats(*self._sound())
        inputs |= self._labels(taken)
        if "decoder_input_ids" in taken:  # otherwise made from labels, which needs tokens that not every config has
            inputs["decoder_input_ids"] = self._integers(self._vocabulary(), self._sequence)
        return inputs

    def _labels(self, taken: set[str]) -> dict[str, Tensor]:
        head = type(self._model).__name__
        if "start_positions" in taken:
            return {name: self._integers(self._sequence) for name in ("start_positions", "end_positions")}
        if "labels" not in taken:
            return {}
        if head.endswith(_TOKEN_HEADS):
            return {"labels": self._integers(self._vocabulary(), self._sequence)}
        if head.endswith("TokenClassification"):
            return {"labels": self._integers(self._config.num_labels, self._sequence)}
        return {"labels": self._integers(self._config.num_labels)} if head.endswith(_CLASS_HEADS) else {}

    def _integers(self, limit: int, *shape: int) -> Tensor:
        return torch.randint(limit, (self._batch, *shape), generator=self._generator)

    def _floats(self, *shape: int) -> Tensor:
        return torch.randn(self._batch, *shape, generator=self._generator).to(self._model.dtype)

    def _vocabulary(self) -> int:
        return int(self._config.get_text_config().vocab_size)

    def _has_image_tokens(self) -> bool:
        """Return True if special text tokens must announce images; such models accept text alone too."""
        return any(hasattr(self._config, name) for name in ("image_token_id", "image_token_index"))

    def _image(self) -> tuple[int, int, int]:
        config = getattr(self._config, "vision_config", self._config)
        side = self._side or getattr(config, "image_size", _SIDE)
        height, width = side if isinstance(side, list | tuple) else (side, side)
        return getattr(config, "num_channels", 3), height, width

    def _sound(self) -> tuple[int, ...]:
        """Return the shape of a spectrogram if the config has mel bins, otherwise of audio samples."""
        bins = getattr(self._config, "num_mel_bins", None) or getattr(self._config, "input_feat_per_channel", None)
        if bins is None:
            return (_SAMPLES,)
        if hasattr(self._config, "max_source_positions") and hasattr(self._config, "num_mel_bins"):
            return bins, 2 * self._config.max_source_positions  # Whisper halves the frames
        return getattr(self._config, "max_length", self._sequence), bins
