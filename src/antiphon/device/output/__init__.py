"""What is shown of an answer: its tokens as they arrived, and their bytes as text at complete characters."""
