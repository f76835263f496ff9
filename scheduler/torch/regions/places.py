"""Names of the places of regions: the path of the module whose call a node is of."""

from __future__ import annotations

import re

from torch import fx

from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of


def place_of(region: Region) -> str:
    """Return the path of the module that calls the first product of a region, or its first
    reduction; or the operator's name."""
    kinds = (Kind.PRODUCT, Kind.REDUCTION)
    anchors = [node for kind in kinds for node in sorted(region.nodes) if kind_of(node) is kind]
    return next((path for node in anchors if (path := path_of(node))), name_of(anchors[0]))


def path_of(node: fx.Node) -> str:
    """Return the path of the innermost module whose call a node is of, such as
    ``layers.0.mlp.up``."""
    meta = node.meta
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    return _plain(paths[-1]) if paths else ""


def _plain(path: str) -> str:
    """Return a path without the words that Dynamo puts around names."""
    inner = re.sub(r"^L\['\w+'\]", "", path).replace("_modules", "")
    return ".".join(re.findall(r"\w+", inner))
