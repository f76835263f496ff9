"""Kernels on a CPU that keep a state in the workspace while they walk along an axis; ``recurrent``
and ``stepped`` say what the state is, and what is computed on the way."""
