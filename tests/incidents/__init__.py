"""Incidents that an operator meets, played on two hosts, and the page that this writes: ``scripts/incidents``."""
