mod properties;
mod scopes;
mod stored;
