"""What the workbench knows: expert kernels that are written from an op's graph, and experience."""
