"""Who follows a cluster is told that there is none."""

from contextlib import closing

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tilewright.measure.cluster.following import ClusterWatch
from tilewright.spaces.errors import InputError


def test_an_address_without_a_cluster_is_refused_and_left():
    with (
        closing(ClusterWatch("127.0.0.1:1")) as watch,
        pytest.raises(InputError, match=r"127\.0\.0\.1:1"),
    ):
        watch.check()
    assert watch.drivers == ()
