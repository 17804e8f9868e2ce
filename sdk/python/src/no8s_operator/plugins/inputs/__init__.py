"""Inputs: plugins that ask for resources on behalf of another system."""
