"""Repeats to rows: median, interval, smallest detectable change, paired ratio to the reference. Ranks nothing."""
