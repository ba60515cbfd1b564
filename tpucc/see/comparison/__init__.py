"""Two compiles side by side: tables for the terminal, and a page."""
