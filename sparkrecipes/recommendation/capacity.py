"""Speed for each user, and the memory that an engine is given: measured, else a range."""

from __future__ import annotations

import math
from typing import NamedTuple

from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import Forecast, MemoryEstimate

GIB = 2**30
GB = 10**9


class Speed(NamedTuple):
    """Tokens a second of each user."""

    low: float
    high: float
    measured: bool
    """Whether ``low`` was measured, or follows from what was."""
    high_measured: bool


class Plan(NamedTuple):
    """What an engine takes of the memory."""

    gpu_memory_utilization: float | None
    """A lower fraction than the recipe's own; None: its own, or the engine's default."""
    takes_bytes: int


def speed_for(row: PublishedRow | None, forecast: Forecast | None, users: int) -> Speed | None:
    """Say how fast each of some users is; None where nothing says it.

    Up to the number of users that was measured the measured share is the least. The most is the
    speed of one user, or a forecast where that is doubted or was not measured: the share of four is
    no bound for one. Beyond what was measured a forecast speaks, and never for more than was
    measured with fewer.

    Args:
        row: Published figures by the method that ranks; doubted ones are not used.
        forecast: Estimated speeds for these users.
        users: Users at once.
    """
    single, share, counted = sound_speeds(row)
    if users == 1 and single is not None:
        return Speed(single, single, measured=True, high_measured=True)
    if share is not None and users == counted:
        return Speed(share, share, measured=True, high_measured=True)
    below = share is not None and users < counted
    if share is not None and below and single is not None:
        return Speed(share, max(share, single), measured=True, high_measured=True)
    if forecast is None:
        return None
    low, high = (total / users for total in forecast.users_total_tok_s)
    if share is not None and below:
        return Speed(share, max(share, high), measured=True, high_measured=False)
    most = min(bound for bound in (high, share, single) if bound is not None)
    return Speed(min(low, most), most, measured=False, high_measured=False)


def sound_speeds(row: PublishedRow | None) -> tuple[float | None, float | None, int]:
    """Return the speed of one user, the share of one of several, and how many those were."""
    if row is None:
        return None, None, 0
    figures = row.row.figures
    doubted = {name for caveat in row.row.caveats for name in caveat.figures}
    single = None if "single_user_tok_s" in doubted else figures.single_user_tok_s
    total = None if "four_users_total_tok_s" in doubted else figures.four_users_total_tok_s
    return single, None if total is None else total / row.row.users, row.row.users


def plan_memory(size: MemoryEstimate, room_bytes: float) -> Plan | None:
    """Fit an engine into a room: by its own fraction, or by a lower one that still serves.

    Returns:
        None where even the smallest fraction that serves what was asked does not fit.
    """
    own = size.reservation_bytes
    if own is None:
        need = None if size.total_bytes is None else need_bytes(size)
        return None if need is None or need > room_bytes else Plan(None, need)
    if own <= room_bytes:
        return Plan(None, own)
    least = size.min_gpu_memory_utilization
    fraction = math.floor(room_bytes / size.usable_bytes * 100) / 100
    if least is None or fraction < least:
        return None
    return Plan(fraction, round(fraction * size.usable_bytes))


def least_bytes(size: MemoryEstimate) -> int | None:
    """Give the least that an engine must be given: its smallest fraction, else its need."""
    if size.min_gpu_memory_utilization is not None:
        return round(size.min_gpu_memory_utilization * size.usable_bytes)
    return size.reservation_bytes or (None if size.total_bytes is None else need_bytes(size))


def need_bytes(size: MemoryEstimate) -> int:
    """Give the need without the host's reserve, by the high bounds."""
    return (size.total_bytes or 0) - size.components.host_reserve_bytes
