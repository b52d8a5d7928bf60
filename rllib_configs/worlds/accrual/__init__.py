"""What the accrual world adds: servers that learn the values of their states as they schedule."""
