"""What single worlds add to RLlib: networks and fast paths of their own."""
