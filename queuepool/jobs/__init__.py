"""What applications import: defining jobs, pushing them, and the job that is running."""
