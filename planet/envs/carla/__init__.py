"""Driving in CARLA, with a server and without one."""
