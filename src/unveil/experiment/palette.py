"""The colours of every page and drawing, in light and in dark; on paper the light ones.

All but `line`, which only separates, can be read as text on `paper` and `raised`: a contrast of at least 4.5 to 1.
The numbered ones are told apart by those who see colours otherwise, in this order; no plot relies on colour alone.
"""

from collections.abc import Mapping

LIGHT = {
    "paper": "#fdfdfb",
    "raised": "#f4f4ef",
    "ink": "#1d2126",
    "muted": "#5a626b",
    "line": "#dcdcd4",
    "accent": "#00609a",
    "warn": "#8a4b00",
    "warn-back": "#fdf3e3",
    "c1": "#006cad",
    "c2": "#b84c00",
    "c3": "#007a57",
    "c4": "#a44a85",
    "c5": "#8c6000",
    "c6": "#6a51a3",
}
DARK = {
    "paper": "#14171b",
    "raised": "#1d2126",
    "ink": "#e8e8e3",
    "muted": "#a2abb4",
    "line": "#343a41",
    "accent": "#7cc4f5",
    "warn": "#f2b866",
    "warn-back": "#2c2315",
    "c1": "#5db7ee",
    "c2": "#ff9452",
    "c3": "#3fd0a4",
    "c4": "#e59ac8",
    "c5": "#e9b949",
    "c6": "#b9a7f0",
}
_PRINTED = LIGHT | {"paper": "#ffffff", "warn-back": "#ffffff", "ink": "#000000", "muted": "#444444"}


def stylesheet() -> str:
    """The colours as variables: light, dark where the reader's system is, and for the printer."""
    schemes = {"(prefers-color-scheme: dark)": DARK, "print": _PRINTED}
    wrapped = [f"@media {medium} {{ {_root(colours)} }}" for medium, colours in schemes.items()]
    return "\n".join([_root(LIGHT), *wrapped])


def _root(colours: Mapping[str, str]) -> str:
    return f":root {{ {' '.join(f'--{name}: {value};' for name, value in colours.items())} }}"


def contrast(one: str, other: str) -> float:
    """(L₁ + 0.05) / (L₂ + 0.05), L₁ ≥ L₂ the relative luminances: the contrast ratio of WCAG 2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """0.2126 R + 0.7152 G + 0.0722 B of the channels on a linear scale."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
