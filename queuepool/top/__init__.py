"""``queuepool top``: what the local pools are doing, drawn twice a second, from their boards alone."""
