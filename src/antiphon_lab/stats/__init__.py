"""Intervals over answers."""
