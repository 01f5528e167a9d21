"""One module or folder for each command of `antiphon-lab bench`."""
