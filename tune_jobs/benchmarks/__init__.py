"""What ``metasched bench`` measures, and what it measures against."""
