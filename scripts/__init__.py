"""Runnable glue over the systems."""
