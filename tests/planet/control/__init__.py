"""Tests of `planet.control`."""
