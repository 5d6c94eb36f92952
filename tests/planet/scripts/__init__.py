"""Tests of `planet.scripts`."""
