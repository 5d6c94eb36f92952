"""Environments and their constructors; does not import TensorFlow."""
