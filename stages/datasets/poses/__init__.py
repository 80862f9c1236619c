"""What readers of human poses share: the skeleton, types of relations, and score maps from photographs."""
