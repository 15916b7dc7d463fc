"""What runs inside a worker's process, from its first line on."""
