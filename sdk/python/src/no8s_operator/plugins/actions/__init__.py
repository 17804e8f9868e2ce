"""Actions: plugins that carry out work elsewhere, for reconcilers or as `action_plugin` of a resource."""
