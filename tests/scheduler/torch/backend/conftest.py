from collections.abc import Iterator

import pytest


@pytest.fixture
def frozen() -> Iterator[None]:
    """Inductor freezes models, on one thread, and knows of no earlier sizes."""
    import torch
    from torch._inductor import config

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch._dynamo.reset()  # the same code with other sizes would have dynamic ones
    with config.patch(freezing=True):
        yield
    torch.set_num_threads(threads)
