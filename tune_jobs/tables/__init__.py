"""Tables are data frames: made from rows, kept as CSV files, printed, and written as Markdown."""
