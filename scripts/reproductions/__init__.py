"""Results that anybody can make again; see `scripts.reproduce`."""
