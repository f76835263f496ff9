"""The template of matrix products by ``mma.sync``, for tensor cores since sm_80."""
