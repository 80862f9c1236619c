"""What the readers of sequences share."""
