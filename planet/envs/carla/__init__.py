"""Driving in CARLA, with or without a server."""
