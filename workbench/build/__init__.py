"""From a candidate's source to a binary for a target."""
