"""The maths of mixing the scores of several ends (METHODS 4)."""
