"""DeepRM's cluster: a horizon of free capacity, decisions while time stands still."""
