"""Tests of `planet.models`."""
