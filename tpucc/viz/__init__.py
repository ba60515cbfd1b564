"""Pictures of every stage."""
