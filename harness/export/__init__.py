"""A run as the tools want it that people watch runs with: one neutral form, and a writer for each tool."""
