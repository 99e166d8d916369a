"""The tokenizer of a transformers folder, as a vocabulary that has a number for every row of the model's table."""

from __future__ import annotations

from pathlib import Path

from headtohead.spec import Mistake
from headtohead.text.subwords import PieceVocabulary


def vocabulary_of(folder: Path, rows: int) -> PieceVocabulary:
    """The published vocabulary, its numbers as they are."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        tokenizer = theirs.backend_tokenizer
    except Exception as error:  # every format fails in a way of its own
        told = " ".join(str(error).split())[:120]
        raise Mistake(f"{folder} has no tokenizer that can be read ({told}); put its tokenizer.json there") from None
    finally:
        logging.set_verbosity(before)
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")):
        raise Mistake(f"{folder} has no tokenizer that can be read; put its tokenizer.json there")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    most = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if most >= rows:
        raise Mistake(
            f"the tokenizer of {folder} has number {most} and the model's table {rows} rows; they belong to two models"
        )
    # a table may have more rows than there are tokens; they get names that no text has
    tokenizer.add_special_tokens([f"<|row {number}|>" for number in range(most + 1, rows)])
    added = sorted(tokenizer.get_added_tokens_decoder().items())
    names = tuple(token.content for _, token in added if token.special)
    vocabulary = PieceVocabulary(tokenizer.to_str(), names, theirs.mask_token or "")
    if vocabulary.size != rows:
        raise Mistake(
            f"the tokenizer of {folder} leaves out numbers below {most}; it cannot be filled up to {rows} rows"
        )
    return vocabulary
