"""State of the gateway that outlives one process, or is shared by several."""
