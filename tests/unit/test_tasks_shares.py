"""Tasks are divided so that neighbours stay together, each is given once, and nothing is left while a process is idle."""

from __future__ import annotations

import random

from tests.support.cases import each
from tpucc.tasks.processes import Shares


def test_neighbours_stay_together() -> None:
    shares = Shares(range(100), 2, 32)
    assert [shares.next(0), shares.next(1), shares.next(0)] == [[*range(6)], [*range(50, 56)], [*range(6, 11)]]


def test_who_has_nothing_left_takes_the_later_half_of_the_longest_share() -> None:
    shares = Shares(range(20), 2, 1)
    assert [shares.next(0)[0] for _ in range(10)] == [*range(10)]
    assert shares.next(0) == [15]
    assert shares.next(1) == [10]
    shares.give_back(1, [10])
    assert shares.next(1) == [10]


@each({str(seed): [seed] for seed in range(50)})
def test_each_task_is_given_once(seed: int) -> None:
    """However many processes there are, and however fast each is; one that ends early gives the rest back."""
    rng = random.Random(seed)
    count, processes, longest = rng.randint(0, 60), rng.randint(1, 7), rng.randint(1, 9)
    shares, done, idle = Shares(range(count), processes, longest), list[int](), set[int]()
    while len(idle) < processes:
        process = rng.randrange(processes)
        given = shares.next(process)
        assert len(given) <= longest
        kept = rng.randint(0, len(given))
        done += given[:kept]
        shares.give_back(process, given[kept:])
        idle = set() if given else idle | {process}
    assert sorted(done) == [*range(count)]
