"""Tests of `planet.training`."""
