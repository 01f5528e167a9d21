"""What coupled methods share where neither end waits for the other (METHODS 3, *Stream*)."""
