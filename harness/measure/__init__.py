"""Ledger to figures: one class a figure, with its unit, direction, definition and source (MEASURES.md)."""
