"""Tests of the shared toolbox."""
