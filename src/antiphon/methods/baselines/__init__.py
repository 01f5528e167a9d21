"""Methods that the exact ones are held against: lossy, or without isolation of tokens. Not for production."""
