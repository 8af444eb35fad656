# SPDX-License-Identifier: BSD-3-Clause
"""The few calls below nvshmem.core that frameworks make themselves, on plain addresses."""
import enum

from gpushmem._library import call, call_for_pointer, lib

Cmp_type = enum.IntEnum("Cmp_type", {"CMP_EQ": 0, "CMP_NE": 1, "CMP_GT": 2, "CMP_LE": 3, "CMP_LT": 4, "CMP_GE": 5})


def my_pe() -> int:
    return call(lib.my_pe)


def n_pes() -> int:
    return call(lib.n_pes)


def team_my_pe(team: int) -> int:
    return lib.team_my_pe(int(team))


def team_n_pes(team: int) -> int:
    return lib.team_n_pes(int(team))


def ptr(address: int, pe: int) -> int:
    """Where the object is mapped here, or 0."""
    return call_for_pointer(lib.ptr, int(address), int(pe)) or 0


def mc_ptr(team: int, address: int) -> int:
    """0: there are no multicast addresses."""
    return 0


def barrier_all() -> None:
    call(lib.barrier_all)


def barrier_all_on_stream(stream: int) -> None:
    call(lib.barrier_all_on_stream, int(stream))


def quiet_on_stream(stream: int) -> None:
    call(lib.quiet_on_stream, int(stream))
