"""Numbers as a reader may trust them: a difference with its sign, and no digit that its interval does not support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

NOTHING = "–"  # there is no such number
MINUS = "−"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FIXED = 5  # decimals up to which a small number is written out
LARGE = 1e15  # from here on, so is none


class Scale(NamedTuple):
    """How numbers that stand together are written: divided by 10**power, with so many decimals."""

    power: int
    decimals: int


def place_of(size: float, digits: int = 2) -> int:
    """The power of ten at which the last of these digits of `size` stands: .0035 -> -4, and .00996 -> -3."""
    return _power_of(size, digits) - digits + 1


def _power_of(size: float, digits: int) -> int:
    """The power of ten at which the first digit stands, once `size` is rounded to so many digits: 99.96 is 100."""
    return int(f"{size:.{digits - 1}e}".partition("e")[2]) if math.isfinite(size) else 0


def half_width(interval: Sequence[float] | None) -> float | None:
    """Half an interval's width; None where there is no interval, or one without width."""
    if interval is None or not 0 < interval[1] - interval[0] < math.inf:
        return None
    return (interval[1] - interval[0]) / 2


def scale(values: Sequence[float | None], place: int) -> Scale:
    """Digits down to 10**place, with a common power of ten where that would be a row of zeros."""
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if largest < LARGE and (place >= -FIXED or largest >= 1e-3):
        return Scale(0, -place)
    power = max(place, math.floor(math.log10(largest))) if largest else place
    return Scale(power, power - place)


def scale_for(effect: float, interval: Sequence[float] | None) -> Scale:
    """The scale of an effect and its interval: two digits of half the interval; without one, two of the effect."""
    half = half_width(interval)
    size = half or abs(effect)
    return scale([effect, *(interval or ())], place_of(size)) if size else Scale(0, 4)


def written(value: float | None, scale: Scale) -> str:
    """A number on a scale, without a sign where it is positive."""
    if value is None or not math.isfinite(value):
        return NOTHING
    rounded = round(value / 10.0**scale.power, scale.decimals) + 0.0  # no minus before a zero
    return f"{rounded:,.{max(0, scale.decimals)}f}".replace("-", MINUS) + times_ten(scale.power)


def signed(value: float | None, scale: Scale) -> str:
    """A difference on a scale; its sign is always shown."""
    text = written(value, scale)
    return text if text.startswith((MINUS, NOTHING)) else f"+{text}"


def times_ten(power: int) -> str:
    """×10⁻⁶, or nothing for 10⁰."""
    return f"×10{str(power).translate(SUPERSCRIPTS)}" if power else ""


def significant(value: float | None, digits: int = 3) -> str:
    """A size that has no interval, with so many digits."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    place = place_of(abs(value), digits)
    power = _power_of(abs(value), digits)
    if -FIXED < power < 6:
        return written(value, Scale(0, -place))
    return written(value, Scale(power, power - place))


def whole(value: float | None) -> str:
    """A count, in groups of three digits."""
    return NOTHING if value is None or not math.isfinite(value) else f"{round(value):,}"


def exact(value: object) -> str:
    """A value that is the same everywhere: whole if it is a whole number, six digits if not, text as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING if value is None else str(value)
    return whole(value) if float(value).is_integer() or 1e5 < abs(value) < 1e15 else significant(value, 6)


def probability(p: float | None) -> str:
    """A p value with two digits; below a ten-thousandth the t distribution's tail is no longer to be trusted."""
    if p is None:
        return NOTHING
    return "< 0.0001" if p < 1e-4 else significant(p, 2) if p < 0.995 else "1"


def percent(share: float | None, effect: float, half: float | None) -> str:
    """A share of the baseline in per cent, signed, with the digits that half the effect's interval supports."""
    if share is None:
        return NOTHING
    size = abs(share) * 100 if half is None or not effect else 100 * half * abs(share / effect)
    return f"{signed(100 * share, scale([100 * share], place_of(size)))} %" if size else "0 %"


def ratio(value: float | None) -> str:
    """Challenger over baseline."""
    return NOTHING if value is None else f"×{value:,.2f}"


def duration(seconds: float | None) -> str:
    """A time as a person says it, with three digits."""
    if seconds is None:
        return NOTHING
    if seconds < 100:
        return f"{significant(seconds)} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{significant(minutes)} min" if seconds < 6000 else f"{significant(hours)} h"


def dollars(amount: float | None) -> str:
    """Money to the cent; two digits of less than ten cents."""
    if amount is None:
        return NOTHING
    return f"${amount:,.2f}" if amount >= 0.1 else f"${significant(amount, 2)}"


def memory(size: float | None) -> str:
    """Bytes in MiB or GiB."""
    if not size:
        return NOTHING
    return f"{significant(size / 2**20)} MiB" if size < 2**30 else f"{significant(size / 2**30)} GiB"


def span(low: str, high: str) -> str:
    """A range, or the one value that it is."""
    return low if low == high else f"{low} to {high}"


def plural(count: int, one: str, many: str = "") -> str:
    """1 seed, 2 seeds."""
    return f"{count} {one}" if count == 1 else f"{count} {many or one + 's'}"
