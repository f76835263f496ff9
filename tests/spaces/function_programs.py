"""Programs that call functions of C's library, one for each family of templates."""

ANGLES = "sin(30 * {0}) + cos({0} + 2) + atan({0}) + atan2({0}, 2 + {0})"
POWERS = "pow(abs({0}), 1.5) + pow({0}, 5) + pow(1.5, {0}) + log1p({0}) + expm1({0})"
WHOLE = "round(3 * {0}) + trunc(5 * {0}) + sign({0}) + fmod(7 * {0}, 2.5)"
PROGRAMS = {
    "angles": f"y[r,c] = {ANGLES.format('x[r,c]')}",
    "powers": f"y[r,c] = {POWERS.format('x[r,c]')}",
    "whole": f"y[c,r] = {WHOLE.format('x[r,c]')}",
    "rows": f"y[r] = sum[c]({ANGLES.format('x[r,c]')}) + max[c]({POWERS.format('x[r,c]')})",
    "columns": f"y[c] = sum[r]({POWERS.format('x[r,c]')})",
    "random": "y[r,c] = x[r,c] * select(random(7, r, c) < 0.3, 0, 1 / 0.7) + random(5, c, 3)",
    "nothing that is not finite": "y[r] = sum[c](select(isfinite(x[r,c]), x[r,c], 0))",
}
CASES = [*((name, "float32") for name in PROGRAMS), ("rows", "float64"), ("whole", "float64")]
"""Programs with the dtypes of their arrays."""
