from pathlib import Path

DATA = Path(__file__).parent / "data"
"""Files that were written elsewhere; each folder says where its files come from."""
