"""The agent loop: call the model, run its tools, repeat."""
