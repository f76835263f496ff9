"""Tensor parallelism by the plan of a configuration of ``transformers``: the linear layers that it
names keep the first rank's rows or columns of their weights, with the collectives between them.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tilewright.scheduler.torch.extraction.shards import check_divides
from tilewright.spaces.errors import InputError, shown

COLUMNS = ("colwise", "colwise_rep", "colwise_gather_output")
"""Styles that divide what a layer gives; the last two gather it afterwards."""
ROWS = "rowwise"
"""The style that divides what a layer takes, and adds up the results."""


def shard(model: Any, configuration: Any, shards: int) -> None:
    """Divide the linear layers of ``model`` among ``shards``, by its configuration's plan.
    :class:`InputError` if it has none, or they do not divide its heads or widths."""
    if shards == 1:
        return
    known = configuration.get_text_config(decoder=True)
    name = configuration.model_type
    for words in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(known, words, None)
        if heads is not None:
            check_divides(heads, shards, f"{words} of {name}")
    plan = {re.escape(path).replace(r"\*", r"\d+"): style for path, style in _plan(model).items()}
    if not plan:
        raise InputError(f"transformers has no plan of tensor parallelism for {name}")
    for path, module in list(model.named_modules()):
        style = next((plan[each] for each in plan if re.fullmatch(rf"(.*\.)?{each}", path)), None)
        if style is None:
            continue
        if style not in (*COLUMNS, ROWS) or not isinstance(module, nn.Linear):
            raise InputError(
                f"the plan of {name} has {shown(style)} for {path}; allowed: of layers"
            )
        parent, _, own = path.rpartition(".")
        setattr(model.get_submodule(parent), own, _divided(module, style, shards, path))


def _plan(model: Any) -> dict[str, str]:
    """Return the styles by path, those of the base model among them."""
    return dict(model.config.base_model_tp_plan or {}) | dict(type(model)._tp_plan or {})


def _divided(module: nn.Linear, style: str, shards: int, path: str) -> nn.Module:
    columns, rows = module.out_features, module.in_features
    bias = module.bias is not None
    if style == ROWS:
        check_divides(rows, shards, f"{path}, a width")
        return _Added(nn.Linear(rows // shards, columns, bias))
    check_divides(columns, shards, f"{path}, a width")
    made = nn.Linear(rows, columns // shards, bias)
    return made if style == COLUMNS[0] else _Gathered(made)


class _Added(nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A layer of rows: the products of all ranks are added up, and then the bias."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: Tensor) -> Tensor:
        from torch.distributed import _functional_collectives as collectives

        made = collectives.all_reduce(F.linear(x, self.weight), "sum", _group())
        return made if self.bias is None else made + self.bias


class _Gathered(nn.Module):  # type: ignore[misc]
    """A layer of columns whose results all ranks get whole."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        from torch.distributed import _functional_collectives as collectives

        return collectives.all_gather_tensor(self.layer(x), x.dim() - 1, _group())


def _group() -> Any:
    return torch.distributed.group.WORLD
