"""Public bug reports where a measurement or a data contract was at fault: each with its input, the right answer, and
five more inputs of its kind. A test's docstring names the thread and its date; the words are ours."""
