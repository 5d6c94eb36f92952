"""Tests of the world that needs no server."""
