"""Two compiled models side by side."""
