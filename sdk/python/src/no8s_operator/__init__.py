"""Write reconciler plugins for Concert in Python.

Start with `no8s_operator.plugins.reconcilers.base`; `no8s-plugin-host` runs what is installed.
"""

__version__ = "0.1.0"
