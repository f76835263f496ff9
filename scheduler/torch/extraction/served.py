"""Models of ``transformers`` as modules that take tensors alone, as serving calls them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Served(nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A module that calls a ``model`` of ``transformers``."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model


class Encoding(Served):
    """Reads tokens."""

    def forward(self, tokens: Tensor) -> Any:
        """Return the outputs of the model."""
        return self.model(input_ids=tokens, return_dict=False)


class Classifying(Served):
    """Looks at images."""

    def forward(self, images: Tensor) -> Any:
        """Return the outputs of the model."""
        return self.model(pixel_values=images, return_dict=False)


class Transcribing(Served):
    """Reads sound, and the tokens written so far, in one call."""

    def forward(self, sound: Tensor, tokens: Tensor) -> Any:
        """Return the scores of the next tokens."""
        given = {"input_features": sound, "decoder_input_ids": tokens}
        return self.model(**given, use_cache=False).logits


class Prefilling(Served):
    """Reads the tokens of a prompt, keeps keys and values, and scores the next token alone."""

    def forward(self, tokens: Tensor) -> Any:
        """Return the scores, and the keys and values of each layer."""
        found = self.model(input_ids=tokens, use_cache=True, logits_to_keep=1)
        layers = found.past_key_values.layers
        return found.logits, [(layer.keys, layer.values) for layer in layers]


class Decoding(Served):
    """Reads the new tokens of several sequences, whose keys and values are in a static cache of
    ``context`` tokens; ``tp`` shards divide the heads."""

    def __init__(self, model: Any, sequences: int, context: int, tp: int) -> None:
        super().__init__(model)
        from transformers import StaticCache

        known = model.config.get_text_config(decoder=True)
        heads = getattr(known, "num_key_value_heads", None) or known.num_attention_heads
        width = getattr(known, "head_dim", None) or known.hidden_size // known.num_attention_heads
        self._cache = StaticCache(config=model.config, max_cache_len=context)
        size = {"batch_size": sequences, "num_heads": heads // tp, "head_dim": width}
        self._cache.early_initialization(**size, dtype=torch.float32, device=torch.device("meta"))
        for place, layer in enumerate(self._cache.layers):
            for name in ("keys", "values", "cumulative_length"):
                self.register_buffer(f"{name}_{place}", getattr(layer, name))

    def forward(self, tokens: Tensor) -> Any:
        """Return the scores of the next tokens."""
        for layer in self._cache.layers:
            layer.device = tokens.device
        return self.model(input_ids=tokens, past_key_values=self._cache, use_cache=True).logits
