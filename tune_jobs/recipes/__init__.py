"""Tables of papers, and of ours, by name: which policies are measured, and on what."""
