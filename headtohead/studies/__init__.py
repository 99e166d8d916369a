"""The built-in studies: one question a file. `yours.py` is the one to copy."""
