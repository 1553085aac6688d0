"""Token ids to text with the bundle's tokenizer alone: a verifier's process needs neither torch nor transformers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer


class Decoder(Protocol):
    """What a scorer needs of a tokenizer."""

    def batch_decode(self, sequences: Sequence[Sequence[int]], *, skip_special_tokens: bool) -> list[str]:
        """One text a sequence of token ids."""
        ...


class FastDecoder:
    """The `tokenizer.json` of a checkpoint."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def batch_decode(self, sequences: Sequence[Sequence[int]], *, skip_special_tokens: bool) -> list[str]:
        """See `Decoder.batch_decode`."""
        texts: list[str] = self._tokenizer.decode_batch(
            [list(sequence) for sequence in sequences], skip_special_tokens=skip_special_tokens
        )
        return texts


def load_decoder(folder: Path) -> Decoder:
    """The decoder of a model folder."""
    return FastDecoder(Tokenizer.from_file(str(folder / "tokenizer.json")))
