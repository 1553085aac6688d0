"""Holds `distributed`."""
