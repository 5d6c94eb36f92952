"""Comparison with the unmodified originals; see `scripts.compare`."""
