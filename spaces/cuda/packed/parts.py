"""The kernels that pack the factors of a product on a GPU, and the one that multiplies them."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.maps.template import CudaMap
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.products.packing import packed
from tilewright.spaces.derivation.products.view import placed_product_in
from tilewright.spaces.language.program import Program
from tilewright.spaces.staged.partition import Part, first_of
from tilewright.spaces.workloads.served import workload_of


@lru_cache(maxsize=64)
def parts(program: Program, target: CudaTarget) -> tuple[Part, ...] | str:
    """Return a map for each factor that is packed, then the product; or why there are none, in
    words."""
    product = placed_product_in(program)
    programs = product if isinstance(product, str) else packed(product)
    if isinstance(programs, str):
        return programs
    copying, multiplying = first_of([CudaMap], target), first_of([Hopper, Mma], target)
    found = []
    for each in programs:
        workload = workload_of(each)
        template = (multiplying if each is programs[-1] else copying)(workload)
        if isinstance(template, str):
            return f"no kernel for a part, {each.outputs[0].name}: {template}"
        found.append(Part(each, workload, template))
    return tuple(found)
