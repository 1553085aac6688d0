"""Which framework meets a team's requirements, by what evidence [12.5.4]: a table without a score."""
