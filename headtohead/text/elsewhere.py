"""Tokenizers that were made elsewhere, as the JSON of `tokenizers`, and vocabularies for use elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headtohead.files import write_atomically, write_json
from headtohead.spec import Mistake
from headtohead.text.subwords import marked, name_for

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from headtohead.text.vocabulary import Vocabulary

BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MASK = "<mask>"  # of a masked model over a vocabulary that has none


def definition(place: str, lower: bool) -> tuple[str, tuple[str, ...]]:
    """The JSON of a tokenizer and the names of its special tokens."""
    tokenizer = _tokenizer(place, lower)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    added = sorted(tokenizer.get_added_tokens_decoder().items())
    return tokenizer.to_str(), tuple(token.content for _, token in added if token.special)


def _tokenizer(place: str, lower: bool) -> Tokenizer:
    path = Path(place).expanduser()
    if place.startswith("hf:") or path.is_dir():
        return _from_transformers(place.removeprefix("hf:"))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"cannot read a tokenizer at {place} ({getattr(error, 'strerror', None) or 'it is not UTF-8'})"
        raise Mistake(f"{wrong}; name a vocab.txt, a tokenizer.json, a folder, or hf:NAME") from error
    return _from_json(text, place) if path.suffix == ".json" else _from_list(text, place, lower)


def _from_json(text: str, place: str) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # tokenizers raises this class itself
        raise Mistake(f"{place} is not a tokenizer.json ({error}); save one with tokenizers or transformers") from error


def _from_list(text: str, place: str, lower: bool) -> Tokenizer:
    lines = text.splitlines()
    numbers = {piece.rstrip("\r"): number for number, piece in enumerate(lines)}
    if "[UNK]" not in numbers or len(numbers) < len(lines):
        wrong = "has no [UNK]" if "[UNK]" not in numbers else "has a piece twice"
        raise Mistake(f"{place} {wrong}; give a vocab.txt of word pieces, one a line, or a tokenizer.json")
    return bert(numbers, [name for name in numbers if name in BERT], lower)


def _from_transformers(name: str) -> Tokenizer:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except Exception as error:  # of many kinds: no such name, no network, no tokenizer in the folder
        first = str(error).strip().partition("\n")[0][:200]
        raise Mistake(f"transformers finds no tokenizer {name!r} ({first}); name a folder that holds one") from error
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        raise Mistake(f"the tokenizer {name!r} is written in Python alone; choose one that has a tokenizer.json")
    return fast


def bert(numbers: Mapping[str, int], specials: Sequence[str], lower: bool) -> Tokenizer:
    """BERT's way with a text, its special tokens among the pieces."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(dict(numbers), unk_token=name_for("unknown", specials)))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(list(specials))
    tokenizer.post_processor = marked(numbers, specials)
    return tokenizer


def spaced(model: Any) -> Tokenizer:
    """A tokenizers object that splits at white space."""
    from tokenizers import Tokenizer, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def save_for_transformers(vocabulary: Vocabulary, folder: Path, masks: bool) -> bool:
    """Write what transformers' AutoTokenizer reads; False where it cannot have the same numbers.

    It gives a line the numbers that it has here, between the marks that `Lines` puts around it, where there are two of
    them. In transformers the name of a special token is that token wherever it stands; here it is text.
    """
    from tokenizers import AddedToken

    found = vocabulary.exported()
    if found is None:
        return False
    tokenizer, specials = found
    specials = specials | ({"mask_token": MASK} if masks and vocabulary.mask == vocabulary.size else {})
    names = [AddedToken(name, special=True, normalized=False) for name in dict.fromkeys(specials.values())]
    tokenizer.add_special_tokens(names)
    if masks and tokenizer.token_to_id(specials["mask_token"]) != vocabulary.mask:
        return False
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **specials}
    write_atomically(folder / "tokenizer.json", json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False))
    write_json(folder / "special_tokens_map.json", specials)
    write_json(folder / "tokenizer_config.json", config)
    return True
