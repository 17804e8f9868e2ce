"""Component reconcilers of a fleet of clusters: one class to write, the rest is done.

A reconciler registers with the mothership, is lent entries that are due, makes the world match what the
inventory says of each, and answers: ready, not ready and waiting for something, come back later, or failed.
"""

from no8s_operator.fleet.answers import Answer, Busy, Condition, Failed, WaitsFor, not_ready, ready, requeue
from no8s_operator.fleet.component import ClusterEvent, Component, Entry, Watch
from no8s_operator.fleet.inventory import Inventory, MovedError, Section, View, Written
from no8s_operator.fleet.runner import Runner, serve

__all__ = [
    "Answer",
    "Busy",
    "ClusterEvent",
    "Component",
    "Condition",
    "Entry",
    "Failed",
    "Inventory",
    "MovedError",
    "Runner",
    "Section",
    "View",
    "WaitsFor",
    "Watch",
    "Written",
    "not_ready",
    "ready",
    "requeue",
    "serve",
]
