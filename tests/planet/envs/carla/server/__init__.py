"""Tests of the client's side, without a real server."""
