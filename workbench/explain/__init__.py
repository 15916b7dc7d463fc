"""Why a candidate is right or wrong, fast or slow."""
