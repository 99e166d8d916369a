"""One file a variation point, its variants side by side. The first class of a file is the slot's contract."""
