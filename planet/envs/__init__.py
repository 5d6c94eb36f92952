"""What processes of environments need; free of TensorFlow."""
