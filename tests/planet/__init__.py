"""Tests of `planet`."""
