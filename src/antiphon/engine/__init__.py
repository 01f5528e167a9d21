"""Where models compute: today one thread a model."""
