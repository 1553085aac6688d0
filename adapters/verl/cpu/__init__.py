"""What verl needs to run where there is no GPU; a run with one loads nothing from here."""
