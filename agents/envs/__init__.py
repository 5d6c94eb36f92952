"""Environments: adapters, wrappers, processes and batches."""
