"""One question a file. A measure takes a trained network or a recipe and returns plain numbers."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """What a number in measures.json is; `better` is "" where no direction is."""

    unit: str
    better: str
    meaning: str


NATS = "nats per scored token"

# What only some objectives measure; each says which.
OF_OBJECTIVES = {
    "auc": Known("fraction", "higher", "chance that a replaced token is ranked above an original one"),
    "auc.masked": Known("fraction", "higher", "the same among the masked positions alone"),
    "discriminator.loss": Known("nats per token", "lower", "mean −ln p of whether a token was replaced"),
    "discriminator.accuracy": Known("fraction", "higher", "tokens judged rightly, most of which are originals"),
    "discriminator.precision": Known("fraction", "higher", "of the tokens called replaced, those that are"),
    "discriminator.recall": Known("fraction", "higher", "of the replaced tokens, those that are called so"),
    "generator.accuracy": Known("fraction", "higher", "masked tokens that the generator finds likeliest"),
    "generator.sampled": Known("fraction", "higher", "masked tokens that a draw from the generator hits"),
    "replaced": Known("fraction", "", "tokens that are not the original any more"),
}

# Everything that a study may name as its primary measure or in a claim.
MEASURES = {
    "loss": Known(NATS, "lower", "mean −ln p of held-out text, in evaluation mode"),
    "loss.windows": Known(NATS, "lower", "the same in windows that do not overlap"),
    "perplexity": Known("perplexity", "lower", "exp(loss): as many tokens would be equally likely"),
    "perplexity.windows": Known("perplexity", "lower", "exp(loss.windows)"),
    "bits_per_byte": Known(
        "bits per byte", "lower", "the loss for each byte of the text; comparable between tokenizers"
    ),
    "bits_per_character": Known("bits per character", "lower", "the loss for each character of the text"),
    "unigram": Known(NATS, "", "the same text's loss under the training text's token frequencies alone"),
    "scored_tokens": Known("tokens", "", "held-out tokens that were scored"),
    "evaluation": Known("hash", "", "of what was scored; equal hashes, equal text"),
    "parameters": Known("numbers", "lower", "trained numbers; a shared tensor counts once"),
    "parameters.not_embedding": Known("numbers", "lower", "those that are not tables of vectors"),
    "flops": Known("operations", "lower", "of training on one token, by formula; a multiply-add is two"),
    "flops.counted": Known("operations", "lower", "torch's own count of the matrix products"),
    "flops.elementwise": Known("operations", "lower", "what the formula counts beside matrix products"),
    "tokens": Known("tokens", "", "seen in training, repeats included"),
    **OF_OBJECTIVES,
}
