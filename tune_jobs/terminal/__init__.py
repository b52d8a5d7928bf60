"""What commands share: progress, files, signals and errors."""
