"""Contractions by ``mma.sync``, for tensor cores since sm_80."""
