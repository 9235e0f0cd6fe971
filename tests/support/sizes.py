"""How large the tests are that prove by number: one row for each, with its size in each command.

`make test` and `make e2e` take the first column: enough to see that the test and the code work together. `make soak`
takes the third, and with SIZE=small the second. The environment overrules one row: `STORM_VMS=1000 make soak`.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple


class Size(NamedTuple):
    """The number of one row in `make test` and `make e2e`, in the small soak, and in the whole soak."""

    test: int
    small: int
    whole: int
    what: str


SIZES: Final = {
    "PROPERTY_EXAMPLES": Size(25, 300, 2_000, "examples of each property"),
    "MODEL_VMS": Size(4, 4, 5, "VMs of the worlds of `tests/modelcheck`, whose every state is visited"),
    "SIMULATED_SEEDS": Size(1, 2, 1_000, "seeds with which two rough days are simulated"),
    "FUZZ_REVIEWS": Size(1_000, 20_000, 100_000, "broken reviews that a server gets"),
    "HALF_REQUESTS": Size(1_500, 3_000, 12_000, "half requests that the certificate controller gets at its port"),
    "ROOM_PARITY_SITUATIONS": Size(300, 2_000, 10_000, "nodes, each with a pod that fits or does not"),
    "STORM_VMS": Size(100, 300, 500, "VMs that start at once"),
    "STORM_ROUNDS": Size(1, 1, 10, "times that each storm is repeated"),
    "ROLLING_CREATES": Size(300, 1_000, 10_000, "pods created, at least, while replicas are replaced"),
    "ROTATION_CREATES": Size(300, 1_500, 10_000, "pods created, at least, while certificates rotate"),
    "ROTATIONS": Size(2, 6, 40, "rotations, at least, meanwhile"),
    "QUIET_SECONDS": Size(100, 100, 300, "seconds in which nothing changes, and every cache stays fresh"),
}
_CHOICE: Final = "TEST_SIZE"
_COLUMNS: Final = Size._fields[:3]


def size(name: str) -> int:
    """The number that this run takes.

    Raises:
        SystemExit: the environment names no size that there is; says what was expected.
    """
    column = os.environ.get(_CHOICE) or _COLUMNS[0]
    if column not in _COLUMNS:
        raise SystemExit(f"error: {_CHOICE}: got '{column}', expected one of {', '.join(_COLUMNS)}")
    given = os.environ.get(name) or str(getattr(SIZES[name], column))
    if not given.isdecimal() or not int(given):
        raise SystemExit(f"error: {name}: got '{given}', expected a number from 1")
    return int(given)
