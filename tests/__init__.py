"""Tests of the whole project; the folders mirror those of the code."""
