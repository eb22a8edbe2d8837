"""Queuepool beside the real Laravel, in PHP and in Python."""
