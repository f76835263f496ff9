"""Derivatives of programs by differences in float64, to hold gradients to."""

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.derivation.gradients.saving import forward
from tilewright.spaces.language import Program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw

Arrays = Mapping[str, np.ndarray]
STEP = 1e-5


def wide(program: Program, seed: int = 1) -> dict[str, np.ndarray]:
    """Draw inputs, those of floating point in float64."""
    drawn = draw(program, seed).items()
    return {name: a if a.dtype.kind in "iub" else a.astype(np.float64) for name, a in drawn}


def seeds(program: Program, seed: int = 2) -> dict[str, np.ndarray]:
    """Draw a derivative of each output of floating point, by the output's name."""
    generator = np.random.default_rng(seed)
    outputs = (output for output in program.outputs if not output.element.is_integer)
    return {o.name: o.array(generator.uniform(-1, 1, o.shape)) for o in outputs}


def total(program: Program, inputs: Arrays, given: Arrays) -> float:
    """Sum the outputs times their derivatives."""
    found = evaluate(program, inputs)
    outputs = {output.name: output for output in program.outputs}
    return float(sum((found[n] * outputs[n].plain(d)).sum() for n, d in given.items()))


def derivatives(
    program: Program,
    wrt: Sequence[str],
    saved: Sequence[str] = (),
    seed: int = 1,
    solved: Sequence[str] = (),
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], Program]:
    """Return by operand what its gradient's program gives, the inputs, and that program."""
    made = gradient(program, wrt, saved, solved=solved)
    inputs, given = wide(program, seed), seeds(program)
    states = evaluate(forward(program, saved), inputs)
    known = inputs | states | {f"d{name}": d for name, d in given.items()}
    found = evaluate(made, {name: known[name] for name in made.operand})
    results = (found[output.name] for output in made.outputs)
    return dict(zip(wrt, results, strict=True)), inputs, made


def check(
    program: Program,
    wrt: Sequence[str],
    saved: Sequence[str] = (),
    seed: int = 1,
    solved: Sequence[str] = (),
) -> Program:
    """Hold the gradient to differences along a random direction of each operand."""
    found, inputs, made = derivatives(program, wrt, saved, seed, solved)
    given = seeds(program)
    generator = np.random.default_rng(3)
    for name in wrt:
        operand = program.operand[name]
        direction = generator.uniform(-1, 1, operand.shape)
        moved = [
            total(program, inputs | {name: inputs[name] + step * operand.array(direction)}, given)
            for step in (STEP, -STEP)
        ]
        wanted = (moved[0] - moved[1]) / (2 * STEP)
        assert found[name].shape == operand.shape
        sizes = np.abs(found[name] * direction).sum() + 1e-3
        assert abs((found[name] * direction).sum() - wanted) <= 1e-6 * sizes, name
    return made
