"""Moving bytes: transports that carry frames, and the thread that a model computes in."""
