"""Each rule computes what torch computes, whatever the shapes and however the arrays lie."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch._inductor import inductor_prims  # noqa: E402  # defines some of the prims
from torch.nn import functional as F  # noqa: E402, N812

from tests.scheduler.torch.strategies import broadcast, laid_out, tensors  # noqa: E402
from tests.scheduler.torch.translated import agree, check, translation_of, values_of  # noqa: E402
from tilewright.scheduler.torch.translation.gap import Gap  # noqa: E402

aten, prims = torch.ops.aten, torch.ops.prims
quick = settings(
    max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)

FUNCTIONS = {
    name: getattr(aten, name).default
    for name in (
        "exp", "tanh", "erf", "sigmoid", "relu", "sqrt", "rsqrt", "abs", "log", "exp2", "floor",
        "silu", "gelu", "neg", "reciprocal", "expm1", "log1p", "ceil",
        "square", "sign", "sgn", "trunc", "sin", "cos", "atan", "sinh", "cosh", "round",
        "tan", "leaky_relu", "hardtanh", "zeros_like", "ones_like",
    )
}  # fmt: skip
POSITIVE = ("sqrt", "rsqrt", "log", "log1p", "reciprocal")
OTHERS: dict[str, Callable] = {
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "leaky": lambda x: F.leaky_relu(x, 0.2),
    "squares": lambda x: x**2 + x**3 + x**4 + x**1,
    "clamp": lambda x: torch.clamp(x, -0.5, 0.75),
    "clamp below": lambda x: torch.clamp(x, min=-0.5) + aten.clamp_min(x, 0.1),
    "clamp above": lambda x: torch.clamp(x, max=0.5) + aten.clamp_max(x, 0.1),
    "full": lambda x: torch.full_like(x, 2.5) + aten.full(x.shape, -3) + x,
    "scalar": lambda x: x * aten.scalar_tensor(2.5) + 3 - x * -1.5,
    "reversed": lambda x: aten.rsub.Scalar(x, 2.0, 3.0),
    "not": lambda x: torch.where(~(x > 0), x, 2 * x),
    "numbers": lambda x: (x > 0).float() + (x == x).int() + (x != 0.5).to(torch.float32),
    "truth": lambda x: torch.where((x - 1).bool(), 1.0, x),
    "isinf": lambda x: torch.where(torch.isinf(x / (x - x)), 0.5, x),
    "inverses": lambda x: torch.asin(x * 0.4) + torch.acos(x * 0.4) + torch.atanh(x * 0.4),
    "remainders": lambda x: torch.fmod(x, 0.37) + torch.remainder(x, -0.37),
    "powers": lambda x: torch.pow(x.abs() + 0.1, 1.7) + torch.pow(2.5, x) + x**5,
    "equal to infinity": lambda x: torch.where((x / 0).abs() == math.inf, 0.5, x),
    "below all numbers": lambda x: torch.where(x / 0 != -math.inf, 0.5, x),
    "isnan": lambda x: torch.where(torch.isnan(x), 0.0, x),
    "casts": lambda x: x.to(torch.float32) * 2 + prims.convert_element_type(x, x.dtype),
    "ones": lambda x: aten.ones(x.shape) + aten.zeros(x.shape) - x,
    "joined": lambda x: torch.where((x > 0).logical_and(x < 1).logical_or(x < -1), x, 0.5),
    "turned": lambda x: prims.rev(x, [0]) + aten.square(x),
    "counted": lambda x: x.shape[0] * torch.arange(x.shape[-1]) // 2 % 3 * x,
    "counted by steps": lambda x: (
        prims.iota(
            x.shape[-1], start=3, step=-2, dtype=torch.int64, device="cpu", requires_grad=False
        )
        * x
    ),
}
TWO: dict[str, Callable] = {
    "add": lambda a, b: torch.add(a, b, alpha=3),
    "sub": lambda a, b: torch.sub(a, b, alpha=0.5),
    "mul": torch.mul,
    "div": lambda a, b: a / (b + 4),
    "floored": lambda a, b: torch.div(a, b + 4, rounding_mode="floor"),
    "truncated": lambda a, b: torch.div(a, b + 4, rounding_mode="trunc"),
    "power": lambda a, b: torch.pow(a.abs() + 0.1, b),
    "angle": lambda a, b: torch.atan2(a, b + 4),
    "products added": lambda a, b: torch.addcmul(a, b, b, value=2) + torch.addcdiv(b, a, b + 4),
    "one of two": lambda a, b: torch.where((a > 0).logical_xor(b > 0), a, b),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "compared": lambda a, b: torch.where((a < b) & (a > -1) | (b >= 1), a, b),
    "equal": lambda a, b: torch.where((a <= b).logical_not(), a, b) + (a == b) * 1,
    "chosen conditions": lambda a, b: torch.where(torch.where(a > b, a > 0, b > 1), a, b),
    "bounded": lambda a, b: torch.clamp(a, min=b),
    "multiplied and added": lambda a, b: (
        prims.fma(a, b, a - b) if hasattr(prims, "fma") else a * b + (a - b)
    ),
}


def together(functions: Iterable[Callable]) -> Callable:
    """The results of several functions: one program computes them all."""
    several = list(functions)
    return lambda *inputs: [function(*inputs) for function in several]


def groups(table: Mapping[str, Callable], size: int) -> list[Any]:
    """The functions of a table, some together."""
    pairs = list(table.items())
    parts = [dict(pairs[start : start + size]) for start in range(0, len(pairs), size)]
    return [pytest.param(together(part.values()), id=", ".join(part)) for part in parts]


@quick
@given(x=tensors())
def test_functions(x: torch.Tensor) -> None:
    check(together(f for name, f in FUNCTIONS.items() if name not in POSITIVE), x)


@quick
@given(x=tensors(positive=True))
def test_functions_of_positive_numbers(x: torch.Tensor) -> None:
    check(together(FUNCTIONS[name] for name in POSITIVE), x)


@quick
@given(x=tensors())
def test_other_functions(x: torch.Tensor) -> None:
    check(together(OTHERS.values()), x)


@quick
@given(x=tensors(positive=True))
def test_powers(x: torch.Tensor) -> None:
    check(lambda x: x**0.5 + x**-0.5 + x**-1 + x**-2 + x**0, x)


@quick
@given(pair=broadcast())
def test_functions_of_two(pair: list[torch.Tensor]) -> None:
    check(together(TWO.values()), *pair)


@quick
@given(several=broadcast(3))
def test_where_is_broadcast(several: list[torch.Tensor]) -> None:
    check(lambda a, b, c: torch.where(a > 0, b, c), *several)


VIEWS: dict[str, Callable] = {
    "flat": lambda x: x.reshape(-1),
    "rows": lambda x: x.reshape(x.shape[0], -1),
    "columns": lambda x: x.reshape(-1, x.shape[-1]).t(),
    "in twos": lambda x: torch.cat((x, x)).reshape(2, -1, x.shape[-1]),
    "back and forth": lambda x: x.reshape(-1).reshape(x.shape).permute(*reversed(range(x.dim()))),
    "permuted, then flat": lambda x: x.transpose(0, -1).reshape(-1),
    "permuted, then rows": lambda x: x.transpose(0, -1).reshape(x.shape[-1], -1).t(),
    "expanded": lambda x: x.unsqueeze(1).expand(x.shape[0], 3, *x.shape[1:]).reshape(-1, 3),
    "squeezed": lambda x: x.unsqueeze(-1).unsqueeze(0).squeeze(),
    "squeezed along": lambda x: x.unsqueeze(0).squeeze(0).squeeze(-1),
    "selected": lambda x: x.select(0, -1).unsqueeze(0),
    "sliced": lambda x: x[x.shape[0] // 2 :],
    "sliced by steps": lambda x: x[..., ::2],
    "sliced from the end": lambda x: x[-1:],
    "flipped": lambda x: x.flip(0, -1) if x.dim() > 1 else x.flip(0),
    "split": lambda x: x.split(2)[-1] * 2,
    "split in parts": lambda x: torch.cat((x, x)).split([1, 2 * x.shape[0] - 1])[1],
    "unbound": lambda x: x.unbind(-1)[-1].unsqueeze(0),
    "chunks": lambda x: x.chunk(2, -1)[0],
    "repeated": lambda x: x.repeat(2, *(1 for _ in range(x.dim()))),
    "rolled": lambda x: aten.roll.default(x, [1], [0]),
    "rolled whole": lambda x: aten.roll.default(x, [2]),
    "strided": lambda x: torch.as_strided(x.contiguous() * 1, (x.shape[0],), (x.stride(0) * 0,)),
    "copied": lambda x: x.clone().contiguous().detach(),
    "diagonal": lambda x: torch.diagonal(torch.cat((x[None], x[None] + 1)), -1, 0, -1),
    "windows": lambda x: torch.cat((x, x, x)).unfold(0, 3, 1).sum(-1),
}


@pytest.mark.parametrize("function", groups(VIEWS, 3))
@quick
@given(x=tensors())
def test_views(function: Callable, x: torch.Tensor) -> None:
    check(lambda x: [view * 1.5 for view in function(x)], x)


@pytest.mark.parametrize("function", groups(VIEWS, 3))
@quick
@given(x=tensors(least=2, most=3))
def test_views_of_views(function: Callable, x: torch.Tensor) -> None:
    turned = lambda x: x.transpose(0, 1)[:, :].unsqueeze(1)  # noqa: E731
    check(lambda x: [view * 1.5 for view in function(turned(x))], x)


REDUCTIONS: dict[str, Callable] = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(-1),
    "sum of two": lambda x: x.sum((0, -1) if x.dim() > 1 else 0),
    "sum kept": lambda x: x - x.sum(0, keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True) * x,
    "mean of all": lambda x: x.mean() + x,
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(0, keepdim=True),
    "product": lambda x: x.prod(-1),
    "max": lambda x: x.max(-1).values,
    "min": lambda x: x.min(0).values,
    "var": lambda x: torch.cat((x, x + 1)).var(0),
    "var without correction": lambda x: x.var(-1, correction=0),
    "norm": lambda x: (x - x.mean(-1, True)) * torch.rsqrt(x.var(-1, correction=0)[..., None] + 1),
    "softmax": lambda x: (x - x.amax(-1, keepdim=True)).exp() / x.exp().sum(-1, keepdim=True),
    "any": lambda x: torch.where((x > 1).any(-1), 1.0, 0.0),
    "all": lambda x: torch.where((x > -1).all(-1, keepdim=True), x, 0.0),
    "euclidean": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "taxicab": lambda x: torch.linalg.vector_norm(x, 1, dim=-1),
    "cumulated": lambda x: x.cumsum(-1) + x.cumprod(-1),
    "greatest so far": lambda x: x.cummax(-1).values - x.cummin(0).values,
    "greatest place": lambda x: torch.where(x.argmax(-1) == 1, 1.0, 0.0) + x.argmin(0).amax() * 0.5,
}


@pytest.mark.parametrize("function", groups(REDUCTIONS, 5))
@quick
@given(x=tensors())
def test_reductions(function: Callable, x: torch.Tensor) -> None:
    check(function, x)


@quick
@given(x=tensors(least=2))
def test_mean_and_variance_are_two_outputs(x: torch.Tensor) -> None:
    check(lambda x: torch.var_mean(x, -1, correction=0), x)


@quick
@given(data=st.data())
def test_products(data: st.DataObject) -> None:
    m, k, n = (data.draw(st.sampled_from((1, 3, 5))) for _ in range(3))
    a, b, c = (data.draw(laid_out(shape)) for shape in ((m, k), (k, n), (n,)))
    check(torch.mm, a, b)
    check(lambda a, b, c: torch.addmm(c, a, b), a, b, c)
    check(lambda a, b, c: torch.addmm(c, a, b, alpha=2, beta=0.5), a, b, c)


@quick
@given(data=st.data())
def test_batches_of_products(data: st.DataObject) -> None:
    s, m, k, n = (data.draw(st.sampled_from((1, 2, 5))) for _ in range(4))
    a, b, c = (data.draw(laid_out(shape)) for shape in ((s, m, k), (s, k, n), (m, n)))
    check(torch.bmm, a, b)
    check(lambda a, b, c: torch.baddbmm(c, a, b), a, b, c)
    check(lambda a, b: torch.bmm(a, b).permute(1, 0, 2).reshape(m, -1), a, b)


@pytest.mark.parametrize("rank", [1, 2, 3])
@quick
@given(data=st.data())
def test_convolutions(rank: int, data: st.DataObject) -> None:
    groups = data.draw(st.sampled_from((1, 2)))
    images, inner, outer = data.draw(st.sampled_from(((1, 2, 4), (2, 4, 2), (1, 4, 6))))
    size = [data.draw(st.sampled_from((4, 5))) for _ in range(rank)]
    taps = [data.draw(st.sampled_from((1, 2, 3))) for _ in range(rank)]
    x = data.draw(laid_out((images, inner, *size)))
    weight = data.draw(laid_out((outer, inner // groups, *taps)))
    bias = data.draw(st.sampled_from((None, torch.rand(outer))))
    steps, padding = data.draw(st.sampled_from((1, 2))), data.draw(st.sampled_from((0, 1)))
    dilation = data.draw(st.sampled_from((1, 2))) if max(taps) < 3 else 1

    def convolved(x: torch.Tensor, weight: torch.Tensor, *bias: torch.Tensor) -> torch.Tensor:
        return aten.convolution(
            x, weight, *(bias or [None]), [steps], [padding] * rank, [dilation], False, [0], groups
        )

    check(convolved, x, weight, *([] if bias is None else [bias]))
    check(lambda x, w: convolved(torch.sigmoid(x), w), x, weight)
    check(lambda x, w: convolved(x.transpose(2, -1).contiguous().transpose(2, -1), w), x, weight)


@quick
@given(data=st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    groups, step, padding = (data.draw(st.sampled_from(two)) for two in ((1, 2), (1, 2), (0, 1)))
    x = data.draw(laid_out((2, 4, 3, 5)))
    weight = data.draw(laid_out((4, 6 // groups, 3, 2)))
    check(
        lambda x, w: aten.convolution(
            x, w, None, [step, step], [padding, padding], [1, 1], True, [step - 1, 0], groups
        ),
        x,
        weight,
    )


@quick
@given(data=st.data())
def test_pools(data: st.DataObject) -> None:
    size, step, padding = (data.draw(st.sampled_from(t)) for t in ((2, 3), (1, 2), (0, 1)))
    x = data.draw(laid_out((2, 3, 5, 6)))
    check(lambda x: F.max_pool2d(x, size, step, padding), x)
    check(lambda x: F.max_pool2d(torch.relu(x) - 1, size, step, padding), x)
    check(lambda x: F.avg_pool2d(x, size, step, padding), x)
    check(lambda x: F.avg_pool2d(torch.exp(x), size, step, padding), x)


def test_pools_of_other_ranks() -> None:
    check(lambda x: F.avg_pool1d(x, 3, 2, 1), torch.rand(2, 3, 9))
    check(lambda x: F.avg_pool3d(x, 2), torch.rand(1, 2, 4, 4, 6))
    check(lambda x: F.max_pool3d(x, 2, 2, 1), torch.rand(1, 2, 4, 4, 6))

    low_memory = inductor_prims._low_memory_max_pool_with_offsets
    windows = ([2, 3], [2, 2], [1, 1], [1, 1], False)
    x = torch.rand(2, 3, 6, 7)
    made = translation_of(lambda x: low_memory(x, *windows)[0], (x,))
    assert agree(values_of(made, (x,))[0], F.max_pool2d(x.double(), *windows))


GPU_ATTENTIONS: dict[str, Callable] = {
    "flash": lambda q, k, v: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0],
    "efficient": lambda q, k, v: aten._scaled_dot_product_efficient_attention(
        q, k, v, None, False, 0.0, True
    )[0],
    "cudnn": lambda q, k, v: aten._scaled_dot_product_cudnn_attention(
        q, k, v, None, False, 0.0, True
    )[0],
}


@pytest.mark.parametrize("name", GPU_ATTENTIONS)
def test_attention_on_a_gpu(name: str) -> None:
    inputs = [torch.rand(1, 2, 5, 8) for _ in range(3)]
    made = translation_of(GPU_ATTENTIONS[name], inputs)
    (found,) = values_of(made, inputs)
    doubled = (tensor.double() for tensor in inputs)
    assert agree(found, F.scaled_dot_product_attention(*doubled, is_causal=True))


@quick
@given(data=st.data())
def test_attention(data: st.DataObject) -> None:
    batch, count, rows, keys, own = (
        data.draw(st.sampled_from(extents)) for extents in ((1, 2), (1, 3), (1, 4), (1, 5), (2, 4))
    )
    q, k, v = (
        data.draw(laid_out(shape)).contiguous()  # the operator reads rows without gaps
        for shape in ((batch, count, rows, own), *[(batch, count, keys, own)] * 2)
    )
    mask = data.draw(laid_out((rows, keys)))
    attend = aten._scaled_dot_product_flash_attention_for_cpu
    check(lambda q, k, v: attend(q, k, v)[0], q, k, v)
    check(lambda q, k, v: attend(q, k, v, scale=0.3, is_causal=True)[0], q, k, v)
    check(lambda q, k, v, m: attend(q, k, v, attn_mask=m)[0], q, k, v, mask)
    check(lambda q, k, v: attend(q, k, v)[0].transpose(1, 2).reshape(batch, rows, -1), q, k, v)


@pytest.mark.parametrize("keys", [1, 5])
def test_queries_all_of_whose_keys_are_hidden_get_zeros(keys: int) -> None:
    torch.manual_seed(0)
    q, k, v = torch.rand(2, 3, 4, 8), torch.rand(2, 3, keys, 8), torch.rand(2, 3, keys, 8)
    mask = torch.rand(2, 1, 4, keys) > 0.4
    mask[0, 0, 2] = False
    attend = aten._scaled_dot_product_flash_attention_for_cpu
    expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask)
    assert not expected[0, :, 2].any()
    for hiding in (mask, torch.zeros(mask.shape).masked_fill(~mask, -math.inf)):
        inputs = (q, k, v, hiding)
        made = translation_of(lambda q, k, v, m: attend(q, k, v, attn_mask=m)[0], inputs)
        with np.errstate(invalid="ignore"):
            (found,) = values_of(made, inputs)
        assert agree(found, expected)


@quick
@given(data=st.data())
def test_joined_and_padded(data: st.DataObject) -> None:
    x, y = data.draw(laid_out((3, 4))), data.draw(laid_out((2, 4)))
    z = data.draw(laid_out((3, 2)))
    check(lambda x, y: torch.cat((x, y, x)), x, y)
    check(lambda x, z: torch.cat((-z, x.sigmoid(), z), -1) * 2, x, z)
    check(lambda x: F.pad(x, (1, 2)), x)
    check(lambda x: F.pad(x.exp(), (1, 0, 2, 1), value=-1.5), x)
    check(lambda x: F.pad(x.reshape(4, 3), (1, 1)), x)
    check(lambda x: F.pad(x[1:, 1:], (1, 1, 1, 0)), x)
    check(lambda x: F.pad(x[:1], (0, 0, 1, 1)), x)
    check(lambda x, y: F.pad(torch.cat((x, y)).view(-1), (2, 1)).reshape(-1, 1), x, y)


@quick
@given(data=st.data())
def test_tables(data: st.DataObject) -> None:
    weight = data.draw(laid_out((7, 4)))
    table = torch.tensor(data.draw(st.lists(st.integers(0, 6), min_size=6, max_size=6)))
    check(lambda w, t: F.embedding(t, w) * 2, weight, table)
    check(lambda w, t: F.embedding(t.view(2, 3), w).sum(-1), weight, table)
    check(lambda w, t: torch.index_select(w, 0, t), weight, table)
    columns = table.view(3, 2) % 4
    check(lambda w, t: torch.gather(w[:3], 1, t), weight, columns)


@quick
@given(data=st.data())
def test_tables_and_masks_are_read_as_they_are(data: st.DataObject) -> None:
    weight, x = data.draw(laid_out((7, 4))), data.draw(laid_out((6, 4)))
    table = torch.tensor(data.draw(st.lists(st.integers(0, 6), min_size=6, max_size=6)))
    mask = x > 0

    def chosen(
        w: torch.Tensor, t: torch.Tensor, x: torch.Tensor, m: torch.Tensor
    ) -> list[torch.Tensor]:
        filled = x.masked_fill(m, -2.5)
        return [torch.where(m, F.embedding(t, w), x), filled.exp().sum(-1), filled.argmax(-1)]

    made = check(chosen, weight, table, x, mask)
    copied = {array.dtype: array.copied for array in made.operands.values()}
    assert not copied["int64"]
    assert not copied["bool"]


@quick
@given(data=st.data())
def test_parts_written_into_copies(data: st.DataObject) -> None:
    x, y = data.draw(laid_out((4, 6))), data.draw(laid_out((4, 2)))

    def written(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        first, second, third = x.clone(), x.exp(), x * 2
        first[:, 1:3] = y
        second[:, ::3] += y
        third[-1] = 0.5
        third[0].mul_(2).add_(x[1])
        return [first, second, third]

    check(written, x, y)


def test_counted_indices_are_axes() -> None:
    x = torch.rand(8, 3)
    made = check(lambda x: x[torch.arange(4) * 2 + 1], x)
    assert "%" not in made.text
    assert "//" not in made.text
    check(lambda x: torch.arange(8)[:, None] * x, x)


def test_an_index_that_may_be_negative_is_a_gap() -> None:
    with pytest.raises(Gap, match="negative"):
        translation_of(lambda x, t: x[t], (torch.rand(4, 3), torch.tensor([0, -1])))


def test_views_of_a_joint_projection_fold_away() -> None:
    """Queries, keys and values of all heads are read out of one product."""
    x, weight = torch.rand(6, 8), torch.rand(8, 24)

    def scores(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        parts = torch.mm(x, weight).split(8, 1)
        q, k, _ = (part.view(6, 2, 4).transpose(0, 1) for part in parts)
        return torch.bmm(q, k.transpose(1, 2))

    made = check(scores, x, weight)
    assert "//" not in made.text
    assert "%" not in made.text


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x.chunk(2, 1)[1],
        lambda x: x[:, 4:],
        lambda x: x.transpose(1, 2).reshape(2, -1, 2, 4)[:, :, 1].transpose(1, 2),
        lambda x: x.unflatten(1, (2, 4)).flatten(1, 2)[:, 4:],
    ],
)
def test_a_convolution_of_some_channels_is_padded_like_one_of_all(part: Callable) -> None:
    def convolved(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.conv1d(part(x), weight, groups=4, padding=3)

    made = check(convolved, torch.rand(2, 8, 5), torch.rand(4, 1, 4))
    assert "inside(" in made.text
    assert "select(" not in made.text


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[:, :, 1:4],
        lambda x: x.flip(2),
        lambda x: x.roll(1, 2),
        lambda x: x.flatten(1)[:, None, :7],
        lambda x: x.repeat(1, 1, 2),
    ],
)
def test_what_lies_beyond_a_part_is_no_padding(part: Callable) -> None:
    def convolved(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = part(x)
        return F.conv1d(y, weight.expand(y.shape[1], -1, -1), groups=y.shape[1], padding=1)

    check(convolved, torch.rand(2, 3, 5), torch.rand(1, 1, 3))


def test_repeated_heads_are_read_by_one_division() -> None:
    def spread(x: torch.Tensor) -> torch.Tensor:
        return x[:, None].expand(2, 3, 5, 4).reshape(6, 5, 4) * 2

    assert "// 3" in check(spread, torch.rand(2, 5, 4)).text
    assert "%" not in check(spread, torch.rand(2, 5, 4)).text


BYTES = torch.tensor([[100, 200, 255], [7, 128, 0]], dtype=torch.uint8)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + x).float().sum(1),
        lambda x: (x - 128).float().sum(1),
        lambda x: (-x).float().sum(1),
        lambda x: (x.to(torch.int8) * 0.5).sum(1),
        lambda x: x.to(torch.int8).abs().float().sum(1),
        lambda x: (x.int() * x.int() * x.int() * x.int()).float().sum(1),
        lambda x: x.sum(1, dtype=torch.uint8) * 0.5,
        lambda x: x.square().float().sum(1),
        lambda x: (torch.arange(300) + 0).to(torch.uint8).float().sum(),
    ],
)
def test_whole_numbers_that_may_wrap_around_are_a_gap(function: Callable) -> None:
    with pytest.raises(Gap, match="which may wrap around"):
        translation_of(function, [BYTES])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.int() - 128).float().sum(1),
        lambda x: (1 - (x > 100).int()).float().sum(1),
        lambda x: (x.int() * x.int() - x.view(2, 3).int()).float().sum(1),
        lambda x: (3 - x.int()).abs().float().sum(1),
        lambda x: x.max(1).values * 0.5,
        lambda x: (torch.arange(200) + 55).to(torch.uint8).float().sum(),
        lambda x: torch.sub(x.int(), x.int(), alpha=3).float().sum(1),
    ],
)
def test_whole_numbers_that_stay_within_their_dtype_are_computed(function: Callable) -> None:
    check(function, BYTES)


SIGNED = torch.tensor([[-1.0, 0, 0], [0, 0, 0], [-2, 3, math.nan], [-1, -1, 1]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_of_numbers_is_that_they_are_not_zero(name: str, dtype: torch.dtype) -> None:
    reduce = getattr(torch, name)
    check(lambda x: reduce(x, 1) * 2.5, SIGNED.to(dtype))


def test_sums_of_truth_values_are_truth_values() -> None:
    check(lambda x: ((x > 0) + (x < 1)).sum(1) * 0.5 + ((x > 0) * (x < 2)).sum(1), SIGNED)


@pytest.mark.parametrize("name", ["log2", "log10", "erfc"])
def test_functions_that_others_only_approximate_are_left_to_torch(name: str) -> None:
    """Multiples of a logarithm miss whole numbers, and 1 - erf(x) has no digits of small values."""
    with pytest.raises(Gap, match=name):
        translation_of(lambda x: getattr(torch, name)(x).sum(1), [SIGNED])


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: torch.sort(x).values, "sort"),
        (lambda x: x.to(torch.int32) * 0.5, "torch.float32 as torch.int32"),
        (lambda x: torch.complex(x, x).abs(), "complex"),
        (lambda x: x + float("inf"), "the constant inf"),
        (lambda x: aten.linalg_vector_norm(x, 3), "a vector norm of order 3"),
        (lambda x: (x > 0) & (x < 1), "a result of torch.bool"),
        (lambda x: F.avg_pool2d(x[None], 2, padding=1, count_include_pad=False), "windows"),
        (lambda x: x.cummax(-1).indices.amax(0) * 0.5, "places that cummax finds"),
    ],
)
def test_what_cannot_be_said_is_named(function: Callable, named: str) -> None:
    with pytest.raises(Gap, match=named):
        translation_of(function, (torch.rand(2, 4, 4),)).text  # noqa: B018


def test_the_least_finite_number_stays_itself() -> None:
    least = torch.finfo(torch.float32).min
    assert repr(-least) in check(lambda x: torch.where(x > 0.5, x, least), torch.rand(2, 5)).text
