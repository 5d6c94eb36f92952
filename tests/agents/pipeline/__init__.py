"""Tests of the run pipeline."""
