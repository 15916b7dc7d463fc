"""Is an output right? The inputs that a candidate is tried on, what they should give, and the rule."""
