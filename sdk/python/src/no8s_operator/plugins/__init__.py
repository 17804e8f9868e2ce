"""What plugins import. Inside the plugin host the same modules are also known as `plugins`."""
