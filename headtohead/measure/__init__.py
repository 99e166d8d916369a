"""One question a file. A measure takes a trained network or a recipe and returns plain numbers."""
