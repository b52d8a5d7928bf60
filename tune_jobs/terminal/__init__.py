"""What commands share: progress, tables of text, signals and the connection to Ray."""
