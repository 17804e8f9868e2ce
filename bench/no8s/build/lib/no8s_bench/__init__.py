"""The plugin of the guide with its loop taken from `BaseReconciler`, which notes when it was called."""

import os
import time
from typing import Any

from no8s_operator.plugins.reconcilers.base import BaseReconciler, ReconcileResult, ReconcilerContext


class BenchReconciler(BaseReconciler):
    max_concurrent_reconciles = 64

    def __init__(self) -> None:
        self._calls = open(os.environ["NO8S_BENCH_CALLS"], "a", buffering=1)  # noqa: SIM115

    @property
    def name(self) -> str:
        return "bench_record"

    @property
    def resource_types(self) -> list[str]:
        return ["DnsRecord"]

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        self._calls.write(f"{resource['name']} {time.time_ns()}\n")
        resource_id, generation, spec = resource["id"], resource["generation"], resource["spec"]
        await ctx.update_status(resource_id, "reconciling", message="Syncing DNS record")
        await ctx.set_condition(
            resource_id,
            condition_type="DnsRecordSynced",
            status="True",
            reason="RecordUpserted",
            message=f"{spec['type']} record for {spec['domain']} synced",
            observed_generation=generation,
        )
        await ctx.update_status(resource_id, "ready", message="synced", observed_generation=generation)
        return ReconcileResult(success=True, message="Synced")
