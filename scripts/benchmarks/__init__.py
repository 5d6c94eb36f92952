"""Benchmarks of `python -m scripts.benchmark`, one module per system."""
