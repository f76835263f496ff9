"""Sums of products drawn at random, and what they are if roles and places are right."""

import numpy as np

from tests.spaces.indices import value_of
from tilewright.spaces.derivation.points import Points
from tilewright.spaces.language import program
from tilewright.spaces.language.tree import AxisValue, Read


def convolution(g):
    """Any stride, padding, dilation and groups, in either order of dimensions."""
    groups, ci, oi = (int(g.integers(1, n)) for n in (4, 4, 3))
    r, s, stride, dilation = (int(g.integers(1, n)) for n in (4, 3, 3, 3))
    pad = int(g.integers(0, 3))
    h, w = (dilation * (k - 1) + 1 + int(g.integers(0, 4)) for k in (r, s))
    p, q = ((e + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for e, k in ((h, r), (w, s)))
    ih = f"{stride}*p + {dilation}*r - {pad}"
    iw = f"{dilation}*s + q*{stride} - {pad}"
    channel = f"o//{oi}*{ci} + c" if groups > 1 else "c"
    order = "(order=(0, 2, 3, 1))" if g.random() < 0.5 else ""
    text = f"""
    x: float64[2, {groups * ci}, {h}, {w}]{order}
    y[n,o,p,q] = sum[c,r,s](inside(x[n, {channel}, {ih}, {iw}], 0) * w[o,c,r,s])
    y: float64[2, {groups * oi}, {p}, {q}]{order}
    """
    extents = {"n": 2, "o": groups * oi, "p": p, "q": q, "c": ci, "r": r, "s": s}
    return program(text, dtype="float64", **extents)


def depthwise(g):
    """Each channel by itself: a batch of rows and no columns."""
    c, p, r, pad = (int(g.integers(low, 5)) for low in (1, 1, 1, 0))
    h = max(p + r - 1 - 2 * pad, 1)
    text = f"""
    x: float64[2, {c}, {h}]
    y[n,c,p] = sum[r](inside(x[n, c, p + r - {pad}], 0.5) * w[c,r])
    """
    return program(text, dtype="float64", n=2, c=c, p=p, r=r)


def heads(g):
    """Query heads in groups, by quotients or remainders, bounded or not; the last group may be
    smaller."""
    group, kv, i, j, d = (int(g.integers(low, 5)) for low in (1, 1, 1, 2, 1))
    h = max(group * kv - int(g.integers(0, 2)), 1)
    shared = f"h//{group}" if g.random() < 0.6 else f"h%{kv}"
    where = "where j <= i + 1" if g.random() < 0.5 else ""
    text = f"""
    {where}
    q: float64[{h}, {i}, {j}](leading={j + 2})
    k: float64[{kv}, {j}, {d}]
    y[h,i,d] = sum[j](q[h,i,j] * k[{shared},j,d] * 0.5 / l[h,i])
    """
    return program(text, dtype="float64", h=h, i=i, j=j, d=d)


def experts(g):
    """Rows by expert, sorted and perhaps gathered; experts may have none."""
    t, n, k, e = (int(g.integers(low, 7)) for low in (1, 1, 1, 2))
    gathered = g.random() < 0.5
    row, rows = ("row[t]", f"row: int32[{t}](index < 9)") if gathered else ("t", "")
    order = "sorted" if g.random() < 0.7 else "index"
    text = f"""
    expert: int32[{t}]({order} < {e})
    {rows}
    a: float64[9, {k}]; w: float64[{e}, {k}, {n}]
    y[t,n] = sum[k](a[{row},k] * w[expert[t],k,n]) * gate[t]
    """
    return program(text, dtype="float64", t=t, n=n, k=k)


def weights(g):
    """A factor made of several arrays, one shared by groups of the depth, and a map before it."""
    m, n, groups, size = (int(g.integers(1, 5)) for _ in range(4))
    text = f"""
    w: int8[{groups * size}, {n}]
    z[m,k] = a[m,k] * g[k] * tanh(s[m])
    y[m,n] = sum[k](z[m,k] * (w[k,n] - zero[k//{size},n]) * scale[k//{size},n])
    """
    return program(text, dtype="float64", m=m, n=n, k=groups * size)


def alibi(g):
    """Axes as values within a factor, and two groups of one axis, one within the other."""
    h = 4 * int(g.integers(1, 3))
    i, j, d = (int(g.integers(1, 5)) for _ in range(3))
    text = """
    y[h,i,d] = sum[j]((q[h,i,j] + slope[h] * (j - i)) * k[h//2,j,d] * t[h//4,j])
    """
    return program(text, dtype="float64", h=h, i=i, j=j, d=d)


FAMILIES = {f.__name__: f for f in (convolution, depthwise, heads, experts, weights, alibi)}


def boxes(found):
    """Each part's values along a dimension of its own, in the order of roles; those of a table's
    parts are as the table has them only where :func:`valid` holds."""
    parts = [*found.batch, *found.rows, *found.columns, *found.depth]
    rank = len(parts)
    return {
        part.name: np.arange(part.extent).reshape([-1 if d == i else 1 for d in range(rank)])
        for i, part in enumerate(parts)
    }


def axes_of(found, program, box, values):
    """The values of the axes where their parts are as in ``box``."""
    tables = dict(values)
    for split in found.indexing.splits.values():
        if split.table:
            below = program.operand[split.table].drawn.below
            tables[f"start.{split.table}"] = np.searchsorted(values[split.table], np.arange(below))
    known = found.indexing.splits.items()
    whole = {a: s.index for a, s in known if s.index.names <= set(box)}
    return {a: value_of(i, box, tables) for a, i in whole.items()}, tables


def valid(found, program, box, axes, values):
    """Where parts are those of an axis' value: not beyond its end, nor in another expert's rows."""
    inside = np.ones(np.broadcast_shapes(*(b.shape for b in box.values())), bool)
    for axis, value in axes.items():
        split, extent = found.indexing.splits[axis], program.extent[axis]
        inside &= value < extent
        if split.table:
            entry = values[split.table][np.minimum(value, extent - 1)]
            inside &= entry == box[split.parts[0].name]
    return inside


def loaded(program, found, load, box, values):
    """One factor, its arrays read by offsets of rows and of the depth in their memory."""
    axes, tables = axes_of(found, program, box, values)
    arrays = {}
    for number, place in enumerate(load.places):
        arrays[f"read {number}"] = _elements(program, found, place, box, tables)
    names = iter(arrays)
    return Points(arrays, axes).value(_replaced(load.value, names))


def _elements(program, found, place, box, tables):
    depth = found.role("depth")
    kept = [name for name in box if name not in depth]

    def at(index):
        """The two tables of an index, added."""
        rows, columns = (value_of(index.part(names), box, tables) for names in (kept, depth))
        return rows + columns + index.constant

    memory = in_memory(program, place.name, tables[place.name])
    offset, inside = at(place.offset), np.asarray(True)
    for bound in place.bounds:
        index = at(bound.index)
        inside = inside & (index >= 0) & (index < bound.extent)
    element = memory[np.clip(offset, 0, len(memory) - 1)]
    return element if place.outside is None else np.where(inside, element, place.outside)


def in_memory(program, name, values):
    """All elements of an array from its start on, gaps included."""
    if name not in program.operand:
        return values.reshape(-1)
    operand = program.operand[name]
    steps = zip(np.indices(operand.shape), operand.strides, strict=True)
    offsets = sum(index * stride for index, stride in steps)
    memory = np.full(np.max(offsets) + 1, np.nan)
    memory[offsets] = values
    return memory


def _replaced(node, names):
    """Reads by other names, in the order of ``value_reads``."""
    if isinstance(node, Read):
        return Read(next(names), ())
    return node.with_children(tuple(_replaced(child, names) for child in node.children))


def contracted(program, found, loads, values):
    """The stage, computed as a batch of products of matrices; each element once."""
    box = boxes(found)
    axes, _ = axes_of(found, program, box, values)
    inside = valid(found, program, box, axes, values)
    points = Points(values, axes)
    for condition in found.conditions:
        inside = inside & points.value(condition)
    sides = []
    for load, other in zip(loads, (found.columns, found.rows), strict=True):
        unread = {part.name for part in other}
        own = {name: value for name, value in box.items() if name not in unread}
        sides.append(loaded(program, found, load, own, values))
    terms = np.where(inside, sides[0] * sides[1], 0.0)
    depth = tuple(range(terms.ndim - len(found.depth), terms.ndim))
    sums = terms.sum(axis=depth, keepdims=True) * points.value(found.leaving)
    if not found.stage.axes:
        return sums.reshape(())
    kept = [np.broadcast_to(axes[a], inside.shape) for a in found.stage.axes]
    result = np.zeros(program.shape(found.stage.axes))
    whole = valid(found, program, box, axes, values)
    result[tuple(k[whole] for k in kept)] = np.broadcast_to(sums, inside.shape)[whole]
    return result


def varies(program, found, expression, part, values):
    """Whether some read of an expression is elsewhere, or some axis in it has another value, when
    one part alone changes: tried at all points."""
    box = boxes(found)
    axes, _ = axes_of(found, program, box, values)
    inside = valid(found, program, box, axes, values)
    dimension = list(box).index(part)
    indices = [i for read in expression.value_reads for i in read.indices]
    points = Points(values, axes)
    axes_as_values = (node for node in expression.values() if isinstance(node, AxisValue))
    for index in (*indices, *axes_as_values):
        at = np.broadcast_to(points.value(index), inside.shape)
        low = np.where(inside, at, np.iinfo(np.int64).max).min(axis=dimension)
        high = np.where(inside, at, np.iinfo(np.int64).min).max(axis=dimension)
        if (low < high).any():
            return True
    return False
