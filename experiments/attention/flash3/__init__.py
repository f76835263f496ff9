"""FlashAttention-3 as a rival: its own kernels, built without torch's headers."""
