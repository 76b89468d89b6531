"""The Docker engine: images, servers and housekeeping in containers. Only this package imports the Docker SDK."""
