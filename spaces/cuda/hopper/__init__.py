"""The template of matrix products on Hopper: TMA, wgmma, warp specialisation, clusters."""
