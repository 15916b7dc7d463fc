"""A closer look at a variant than its verdict needs: the board's tabs, and compute-sanitizer."""
