"""Tests of `planet.tools`."""
