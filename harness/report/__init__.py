"""What a run showed, for a person: the model of a report and its renderings. Ranks nothing."""
