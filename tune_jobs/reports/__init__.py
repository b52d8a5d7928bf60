"""Reports of several commands on one page."""
