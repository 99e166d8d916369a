"""From the measures of finished runs to a verdict. Reads files only; no module here imports torch."""
