"""Reconcilers: plugins that own resource types."""
