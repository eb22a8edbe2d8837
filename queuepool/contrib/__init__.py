"""What belongs to a framework or a service. No other part of queuepool imports it."""
