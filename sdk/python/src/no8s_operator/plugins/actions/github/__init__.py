"""GitHub's API, as far as running workflows needs it."""
