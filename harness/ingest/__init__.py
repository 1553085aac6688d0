"""Logs that were written elsewhere, read into the same ledger and report; what they lack is null, never guessed."""
