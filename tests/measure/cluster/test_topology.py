import pytest

from tilewright.measure.cluster.topology import cpus_of, domains, slots

# An EPYC of two caches with four cores each, of two hardware threads: CPU 0 and 8 are one core.
FILES = {
    f"cpu{cpu}/{name}": text
    for cpu in range(16)
    for name, text in (
        ("topology/thread_siblings_list", f"{cpu % 8},{cpu % 8 + 8}"),
        ("cache/index3/shared_cpu_list", "0-3,8-11" if cpu % 8 < 4 else "4-7,12-15"),
    )
}
LEFT = ((0, 8), (1, 9), (2, 10), (3, 11))
RIGHT = ((4, 12), (5, 13), (6, 14), (7, 15))


def read(name):
    return FILES.get(name, "")


def test_cores_are_grouped_by_the_cache_they_share():
    assert domains(range(16), read) == (LEFT, RIGHT)


def test_only_the_cpus_one_may_use_are_told():
    assert domains([1, 9, 4], read) == (((1, 9),), ((4,),))


def test_without_a_topology_each_cpu_is_a_core_beside_all_others():
    assert domains([2, 0, 1], lambda name: "") == (((0,), (1,), (2,)),)


def test_the_cpus_of_this_machine_are_all_told_once():
    import os

    cpus = [cpu for domain in domains() for core in domain for cpu in core]
    assert sorted(cpus) == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("threads", "expected"),
    [(1, (LEFT, RIGHT)), (4, (LEFT, RIGHT)), (5, (LEFT + RIGHT,)), (8, (LEFT + RIGHT,)), (9, ())],
)
def test_kernels_share_no_cache_as_long_as_one_has_cores_enough(threads, expected):
    assert slots((LEFT, RIGHT), threads) == expected


def test_cpus_of_cores_are_in_order():
    assert cpus_of(LEFT[:2]) == (0, 1, 8, 9)
