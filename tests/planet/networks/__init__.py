"""Tests of `planet.networks`."""
