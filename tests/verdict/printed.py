"""Closeness to a printed figure."""


def close(value: float, printed: str) -> bool:
    """Equal to the digits that `printed` has, given as text."""
    decimals = len(printed.partition("e")[0].partition(".")[2])
    scale = 10.0 ** int(printed.partition("e")[2] or 0)
    return abs(value / scale - float(printed) / scale) <= 0.5000001 * 10.0**-decimals
