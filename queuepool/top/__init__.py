"""``queuepool top``: what the local pools do, drawn twice a second, from their boards alone."""
