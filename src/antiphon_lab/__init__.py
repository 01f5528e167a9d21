"""Workloads and measurements: ratios of things measured in one run, medians, never an absolute time in a test."""
