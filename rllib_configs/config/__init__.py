"""The configuration file: what it may say, how it is read, checked, changed and explained."""
