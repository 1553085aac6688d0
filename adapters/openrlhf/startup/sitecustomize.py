"""Python runs this at the start of each process whose PYTHONPATH holds this folder, as Ray's and vLLM's do."""

from adapters.openrlhf.imports import install

install()
