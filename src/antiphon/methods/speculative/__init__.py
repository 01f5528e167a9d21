"""Collaborative speculative decoding: one file a method, and what chains and trees of drafts share (METHODS 2, 3)."""
