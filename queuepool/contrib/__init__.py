"""What belongs to a framework or a service. Nothing else of queuepool imports it."""
