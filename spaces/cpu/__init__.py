"""CPU kernels in C: the target, its compiler, and the templates.

Each folder but ``tiles`` and ``vectors`` has one family of templates, with the same parts:

- ``template``: the decisions, and what the other modules make of a schedule;
- ``served``: the programs that it serves, and the reason for each that it refuses;
- ``rules``: the schedules that it refuses, each with a sentence;
- ``blocking``, ``blocks`` or ``tiling``: the extents that decisions lead to, also for whole
  populations of schedules as NumPy arrays;
- ``code``: the C of a kernel; other modules write parts of it, and ``prelude`` has the functions
  that all kernels of a workload share;
- ``traffic``: the quantities (``spaces.quantities``) that cost models predict times from.

``tiles`` has inner loops that several families share, ``vectors`` the C of vectors. ``abi`` says
how a kernel is called, ``target`` describes the machine, and ``isa`` has what differs between
processors.
"""
