"""The index of a cloud: a PostgreSQL database with pgvector."""
