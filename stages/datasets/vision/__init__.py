"""What the readers of pictures share."""
