"""What the formulas and the simulator predict, beside what was published by others."""
