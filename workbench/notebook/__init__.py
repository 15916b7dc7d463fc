"""The notebook room: magics, completion, the static output, and accepting a kernel back into the notebook as plain code."""
