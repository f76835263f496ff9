"""Models of the installed ``transformers`` by their configurations, with weights on ``meta``.

A configuration is a model type such as ``llama``, with that type's defaults, or a file
``config.json``. A file is data: it chooses among the classes of ``transformers``, and no code that
it may name is loaded. Nothing is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tilewright.scheduler.extras import extra
from tilewright.scheduler.torch.extraction.served import (
    Classifying,
    Decoding,
    Encoding,
    Prefilling,
    Transcribing,
)
from tilewright.scheduler.torch.extraction.tensor_parallel import shard
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.checks import whole
from tilewright.spaces.validation.files import open_now
from tilewright.spaces.validation.nearest import suggestion

MOST_BYTES = 1 << 20
CODE = ("auto_map", "custom_pipelines", "quantization_config")
"""Keys of a configuration that are left aside: they name code, or how weights are stored."""
TASKS = ("IMAGE_CLASSIFICATION", "SPEECH_SEQ_2_SEQ", "MASKED_LM", "CAUSAL_LM")
"""The tasks of the model for a configuration that names no class; the first that has one is
taken."""
TOKENS = 128
"""Rows of a model of text that is not asked for any."""
CONTEXT = 1024
"""Tokens in the cache when decoding, the new ones among them."""
IMAGE = 224
"""Height and width of the images of a model whose configuration gives none."""


class Configured:
    """A model function for :func:`scheduler.torch.extraction.calls.calls`: the model of a
    configuration, and its inputs.

    ``rows`` are the tokens of one sequence (``prefill``), the sequences that get a token each
    (``decode``), the tokens of a text that is written from half a minute of speech, or images.
    """

    def __init__(self, name: str, context: int | None = None) -> None:
        library = extra("transformers", "models", "--config")
        self._configuration = _configuration(library, name)
        self._model = _model_class(library, self._configuration, name)
        self._context = whole("context", CONTEXT if context is None else context, 1, 1 << 24)
        self.__name__ = Path(name).stem if name.endswith(".json") else name

    def __call__(
        self, rows: int = 0, phase: str = "prefill", draft: int = 0, tp: int = 1
    ) -> tuple[nn.Module, tuple[Any, ...]]:
        """Return the module, in evaluation mode, and its arguments."""
        with torch.device("meta"):
            model = self._model(self._configuration).eval()
            shard(model, self._configuration, tp)
            if phase == "decode":
                return self._decoding(model, rows, draft, tp)
            return self._inputs(model, rows)

    def _inputs(self, model: Any, rows: int) -> tuple[nn.Module, tuple[Any, ...]]:
        known, name = self._configuration, model.main_input_name
        if name == "pixel_values":
            size = getattr(known, "image_size", IMAGE)
            height, width = size if isinstance(size, list | tuple) else (size, size)
            return Classifying(model), (torch.empty(rows or 1, known.num_channels, height, width),)
        if name == "input_features":
            frames = 2 * known.max_source_positions
            sound = torch.empty(1, known.num_mel_bins, frames)
            return Transcribing(model), (sound, _tokens(1, rows or 1))
        if name != "input_ids":
            raise InputError(
                f"{self.__name__} takes {name}; allowed: models of text, images, speech"
            )
        self._check_length(rows)
        kind = Prefilling if _decodes(model) else Encoding
        return kind(model), (_tokens(1, rows or TOKENS),)

    def _decoding(
        self, model: Any, rows: int, draft: int, tp: int
    ) -> tuple[nn.Module, tuple[Any, ...]]:
        if not _decodes(model):
            raise InputError(f"{self.__name__} has no phase decode; allowed: prefill")
        self._check_length(self._context)
        new = draft + 1
        return Decoding(model, rows // new, self._context, tp), (_tokens(rows // new, new),)

    def _check_length(self, tokens: int) -> None:
        most = getattr(self._configuration, "max_position_embeddings", None)
        if most is not None and tokens > most:
            raise InputError(f"{self.__name__} takes at most {most} tokens, not {tokens}")


def _configuration(library: Any, name: str) -> Any:
    """Return the configuration of a model type, or of a file; :class:`InputError` if there is
    none."""
    if not name.endswith(".json"):
        return _config_class(library, name)()
    given = _table(Path(name))
    kind = given.get("model_type")
    if not isinstance(kind, str):
        raise InputError(f"{shown(name)}: model_type={shown(kind)} is no text, such as llama")
    known = {key: value for key, value in given.items() if key not in CODE}
    try:
        return _config_class(library, kind).from_dict(known)
    except InputError:
        raise
    except Exception as error:  # anything that the checks of transformers raise
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{shown(name)} is no configuration of {kind}: {shown(said)}") from None


def _config_class(library: Any, kind: str) -> Any:
    known = library.CONFIG_MAPPING
    try:
        return known[kind]
    except KeyError:
        near = suggestion(kind, list(known.keys()))
        raise InputError(
            f"transformers {library.__version__} has no model type {shown(kind)}; {near}allowed: "
            "such as llama, qwen3, bert, or a config.json"
        ) from None


def _table(path: Path) -> Mapping[str, Any]:
    try:
        with open_now(path) as file:
            data = file.read(MOST_BYTES + 1)
        found = json.loads(data) if len(data) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is no JSON: {error}"
        raise InputError(f"{shown(str(path))}: {reason}; allowed: a config.json") from None
    if not isinstance(found, dict):
        raise InputError(f"{shown(str(path))} is no JSON object of at most {MOST_BYTES} bytes")
    return found


def _model_class(library: Any, configuration: Any, name: str) -> Any:
    """Return the class that a configuration names, or else that of the first of :data:`TASKS`."""
    for named in configuration.architectures or ():
        found = getattr(library, str(named), None)
        if isinstance(found, type) and issubclass(found, library.PreTrainedModel):
            return found
        raise InputError(f"{shown(name)}: transformers has no model {shown(named)}")
    for task in TASKS:
        found = getattr(library, f"MODEL_FOR_{task}_MAPPING").get(type(configuration), None)
        if found is not None:
            return found
    found = library.MODEL_MAPPING.get(type(configuration), None)
    if found is None:
        raise InputError(f"transformers has no model for the configuration {shown(name)}")
    return found


def _decodes(model: Any) -> bool:
    """Tell whether a model writes text after text, with a cache."""
    return bool(model.can_generate()) and not model.config.is_encoder_decoder


def _tokens(sequences: int, tokens: int) -> torch.Tensor:
    return torch.empty(sequences, tokens, dtype=torch.int64)
