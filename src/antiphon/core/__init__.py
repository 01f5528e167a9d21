"""Pure maths: numpy in, numpy out. Chance and time are arguments; nothing here does I/O or keeps state."""
