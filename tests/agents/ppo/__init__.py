"""Tests of batch PPO."""
