"""FlashInfer's kernels for Hopper, built from its published sources; a rival of ``flash3`` here."""
