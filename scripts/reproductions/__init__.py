"""Results that anybody can reproduce; see `scripts.reproduce`."""
