"""Tests of the driving environment."""
