"""Offline world: simple cars on the roads of an OpenDRIVE map."""
