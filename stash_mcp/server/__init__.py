"""The MCP server: thin. It parses, calls the backend, and returns a typed result."""
