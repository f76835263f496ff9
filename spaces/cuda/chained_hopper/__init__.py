"""The template of attention-like chains on Hopper: two products by wgmma, reductions between."""
