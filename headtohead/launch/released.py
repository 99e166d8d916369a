"""A folder as transformers saves a model: loaded from safetensors alone, and audited by every road to its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headtohead.audit import Finding
from headtohead.files import Damaged, read_json
from headtohead.spec import Mistake

LENGTH = 32


def audit_model(folder: Path, trusted: bool = False) -> list[dict[str, Any]]:
    """Does the model in this folder see the future? One that is no causal model is told so, and not accused."""
    config = _config(folder, trusted)
    reason = not_causal(config)
    found = (
        [Finding("A-CAUSAL", "fatal", "as loaded", "pass", reason, "It is not a causal model.")]
        if reason
        else _look(folder, trusted)
    )
    return [{"arm": folder.resolve().name, **finding._asdict()} for finding in found]


def _config(folder: Path, trusted: bool) -> dict[str, Any]:
    """config.json, after what must not be loaded was refused."""
    try:
        config = read_json(folder / "config.json")
    except Damaged:
        raise Mistake(f"{folder / 'config.json'} is not JSON; save the model again") from None
    if config.get("auto_map") and not trusted:
        raise Mistake(
            f"{folder} brings code of its own; read its .py files, and say --trust-remote-code if you trust them"
        )
    if not any(folder.glob("*.safetensors")):
        if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
            how = "from_pretrained(DIR).save_pretrained(DIR) in transformers, on a machine where you trust the file"
            raise Mistake(f"{folder} has pickled weights, which run code when read; convert them to safetensors: {how}")
        raise Mistake(f"{folder} has a config.json and no weights; put model.safetensors beside it")
    return config


def not_causal(config: dict[str, Any]) -> str | None:
    """Why a model does not claim to be causal, going by what it says it is; None where it does, or says nothing."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    names = config.get("architectures") or []
    if config.get("is_encoder_decoder"):
        return f"{', '.join(names) or config.get('model_type')} reads all of its input and writes another text"
    causal = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()) | set((config.get("auto_map") or {}).values())
    own = (config.get("auto_map") or {}).get("AutoModelForCausalLM", "").rpartition(".")[2]
    if not names or any(
        name in causal or name == own or name.endswith(("ForCausalLM", "LMHeadModel")) for name in names
    ):
        return None
    return f"{', '.join(names)} reads both sides of a text"


def _look(folder: Path, trusted: bool) -> list[Finding]:
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    from headtohead.audit import released

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, trust_remote_code=trusted, dtype=torch.float32
        )
    except (SafetensorError, ValueError, OSError, ImportError, KeyError) as error:
        told = " ".join(str(error).split())[:200]
        raise Mistake(f"{folder} cannot be loaded as a causal model ({told}); save it with save_pretrained") from None
    text = model.config.get_text_config()
    specials = {getattr(text, name, None) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    longest = getattr(text, "max_position_embeddings", None) or LENGTH + released.PADDING
    length = max(4, min(LENGTH, int(longest) - released.PADDING))
    flat = {one for value in specials for one in (value if isinstance(value, list) else [value]) if one is not None}
    return released.audit(model, text.vocab_size, flat, length)
