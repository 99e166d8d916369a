"""From a text to batches of token numbers. Nothing in here imports torch."""
