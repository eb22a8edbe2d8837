"""What an operator sees of the pools and queues of a configuration, and does to them: by command or in the browser."""
