"""Speed, as ratios of two things run in turn on the same machine; nothing here is asserted by a test."""
