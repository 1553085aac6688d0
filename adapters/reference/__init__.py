"""The in-house loop: the instrument that every other adapter is checked against."""
