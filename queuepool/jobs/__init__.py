"""What applications import: jobs, how they are pushed, and what a job may ask while it runs."""
