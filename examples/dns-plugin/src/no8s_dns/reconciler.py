# src/no8s_dns/reconciler.py
import asyncio
import logging
import time
from typing import Any, Dict, List

from no8s_operator.plugins.reconcilers.base import (
    ReconcilerPlugin,
    ReconcilerContext,
    ReconcileResult,
)

logger = logging.getLogger(__name__)


class DnsRecordReconciler(ReconcilerPlugin):
    """Reconciles DnsRecord resources against a DNS provider API."""

    def __init__(self):
        self._running = False
        self.reconcile_interval = 30  # seconds between loop iterations

    @property
    def name(self) -> str:
        return "dns_record"

    @property
    def resource_types(self) -> List[str]:
        """Resource type names this reconciler handles.

        Similar to setting up a Watch on specific GVKs in a Kubernetes controller.
        The operator rejects API requests for resource types that no reconciler claims.
        """
        return ["DnsRecord"]

    async def start(self, ctx: ReconcilerContext) -> None:
        """Main reconciliation loop — equivalent to controller-runtime's Start().

        The operator calls this in a dedicated asyncio task. Run until
        ctx.shutdown_event is set (analogous to the context cancellation
        in a Kubernetes controller).
        """
        self._running = True
        logger.info("DnsRecord reconciler started")

        while not ctx.shutdown_event.is_set():
            try:
                resources = await ctx.get_resources_needing_reconciliation(
                    resource_type_names=self.resource_types,
                    limit=10,
                )

                for resource in resources:
                    result = await self.reconcile(resource, ctx)
                    # Record the attempt in reconciliation history
                    await ctx.record_reconciliation(
                        resource_id=resource["id"],
                        result=result,
                        trigger_reason="spec_change",
                    )

            except Exception:
                logger.exception("Error in DnsRecord reconcile loop")

            # Wait before next iteration (like the resync period in an informer)
            try:
                await asyncio.wait_for(
                    ctx.shutdown_event.wait(),
                    timeout=self.reconcile_interval,
                )
                break  # shutdown_event was set
            except asyncio.TimeoutError:
                continue  # timeout expired, loop again

    async def reconcile(
        self, resource: Dict[str, Any], ctx: ReconcilerContext
    ) -> ReconcileResult:
        """Reconcile a single DnsRecord — equivalent to Reconcile() in controller-runtime."""
        resource_id = resource["id"]
        spec = resource.get("spec", {})
        start_time = time.monotonic()

        # Handle deletion (like checking DeletionTimestamp != nil)
        if resource.get("status") == "deleting":
            return await self._handle_delete(resource, ctx)

        # Mark as reconciling
        await ctx.update_status(resource_id, "reconciling", message="Syncing DNS record")

        try:
            # --- Your reconciliation logic here ---
            # Compare desired state (spec) with actual state (external API)
            domain = spec["domain"]
            record_type = spec["type"]
            value = spec["value"]

            # Example: call your DNS provider
            # await self.dns_client.upsert_record(domain, record_type, value)

            # Set a domain-specific condition for fine-grained observability
            await ctx.set_condition(
                resource_id,
                condition_type="DnsRecordSynced",
                status="True",
                reason="RecordUpserted",
                message=f"{record_type} record for {domain} synced",
                observed_generation=resource["generation"],
            )

            # Mark as ready (the operator also sets Ready=True automatically)
            await ctx.update_status(
                resource_id,
                "ready",
                message=f"DNS record {domain} synced",
                observed_generation=resource["generation"],
            )

            return ReconcileResult(success=True, message="Synced")

        except Exception as e:
            # Set a domain-specific condition to capture the reason for failure
            await ctx.set_condition(
                resource_id,
                condition_type="DnsRecordSynced",
                status="False",
                reason="ProviderError",
                message=str(e),
            )
            # Mark as failed — the operator's requeue loop will retry with backoff
            # (like returning ctrl.Result{}, err in Kubernetes)
            await ctx.update_status(
                resource_id,
                "failed",
                message=str(e),
            )
            return ReconcileResult(success=False, message=str(e))

    async def _handle_delete(
        self, resource: Dict[str, Any], ctx: ReconcilerContext
    ) -> ReconcileResult:
        """Handle resource deletion — equivalent to the finalizer removal pattern in Kubernetes."""
        resource_id = resource["id"]

        try:
            # Clean up external resources
            # await self.dns_client.delete_record(resource["spec"]["domain"])

            # Remove our finalizer (like removing the finalizer string from metadata.finalizers)
            await ctx.remove_finalizer(resource_id, self.name)

            # If no finalizers remain, hard-delete the resource
            # (like the API server garbage-collecting the object after all finalizers clear)
            remaining = await ctx.get_finalizers(resource_id)
            if not remaining:
                await ctx.hard_delete_resource(resource_id)

            return ReconcileResult(success=True, message="Deleted")

        except Exception as e:
            return ReconcileResult(success=False, message=f"Delete failed: {e}")

    async def stop(self) -> None:
        """Graceful shutdown — clean up connections, flush buffers, etc."""
        self._running = False
        logger.info("DnsRecord reconciler stopped")
