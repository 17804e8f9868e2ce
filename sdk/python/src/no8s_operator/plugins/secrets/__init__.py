"""Secret stores: where plugins read passwords and tokens from."""
