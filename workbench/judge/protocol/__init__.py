"""What the judge and a worker have in common: how they speak, the memory that they share, and what both work out alike."""
