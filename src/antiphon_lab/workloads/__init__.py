"""What is asked: prompts, questions, texts and documents."""
