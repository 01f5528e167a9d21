"""Dual-end retrieval under document isolation: one file a method, and the two halves that they share (METHODS 4)."""
