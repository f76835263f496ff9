"""Our best schedules against cuBLAS and Triton on a GPU, interleaved in one process."""
