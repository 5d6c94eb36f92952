"""Tests of HER."""
