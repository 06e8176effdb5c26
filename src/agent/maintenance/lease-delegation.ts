/**
 * Sets a label on the Lease of the host's own node. A leader that cordons centrally drains only nodes whose Lease has
 * this label.
 */
import type { KubeClient } from '../../kube/client.ts';
import { leases } from '../../kube/resources.ts';
import { ifAllowed, ifFound, isInvalid, isRefusal } from '../../kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { messageOf, unlessError } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { keepDoing, type SignalObject } from '../object/signal-object.ts';

const NODE_LEASES = 'kube-node-lease';
/**
 * The field manager of the original agent. Refit uses the same name, so that the label has the same owner whichever
 * agent sets it.
 */
const FIELD_MANAGER = 'k0s/autopilot';
const REFUSED =
  "the agent has no right to label the node's Lease, so it drains the node itself: grant the agent the right to patch that Lease";

/** Sets or checks a label on the Lease of the Node `name`. The label allows a leader to drain the node. */
export interface LeaseDelegation {
  /** Sets the label. May be repeated. Rejects if the API server refuses or does not answer. */
  readonly offer: (name: string, abort: AbortSignal) => Promise<void>;
  /**
   * Reports whether a leader will drain the node. The result is false if the Lease has no label and the API server
   * refuses to set it. The result is true if the agent may not read the Lease.
   */
  readonly isExpected: (name: string, abort: AbortSignal) => Promise<boolean>;
}

/** Returns the delegation. It remembers whether the API server refused the label. */
export function leaseDelegation(client: KubeClient): LeaseDelegation {
  let isRefused = false;
  const offer = async (name: string, abort: AbortSignal): Promise<void> => {
    await labelNodeLease(client, name, abort).catch((error: unknown) => {
      isRefused ||= isRefusal(error);
      throw error;
    });
    isRefused = false;
  };
  return {
    offer,
    async isExpected(name, abort) {
      const found = ifFound(client.get(leases, name, { namespace: NODE_LEASES, abort }));
      const isLabelled = found.then(
        (lease) => lease?.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined,
      );
      // If the agent may not read the Lease, it expects that a leader drains the node. The node and the leader may then
      // wait for each other, which does no harm.
      if ((await ifAllowed(isLabelled)) ?? true) return true;
      // A Lease that was deleted or restored from a backup has lost the label.
      if (!isRefused) await offer(name, abort);
      return !isRefused;
    },
  };
}

export interface DelegationParts extends Tools {
  /** The Node of this host. Another part of the agent watches it. */
  readonly node: SignalObject;
  readonly delegation: Pick<LeaseDelegation, 'offer'>;
}

/**
 * Keeps the label on the Lease until `stop` aborts. Never rejects. It continues after a refusal, because the agent may
 * be granted the right later.
 */
export async function keepDelegated(parts: DelegationParts, stop: AbortSignal): Promise<void> {
  const { node, delegation, log } = parts;
  let labelled: string | undefined;
  let refused: string | undefined;
  const label = async (): Promise<undefined> => {
    // The owner reference lets the API server delete the Lease together with its Node.
    const { name = '', uid } = node.newest?.metadata ?? {};
    if (uid === undefined || uid === labelled) return;
    await delegation.offer(name, stop);
    labelled = uid;
    refused = undefined;
    log.info('the leader may cordon and drain this node');
  };
  const tell = (error: unknown, pauseMs: number): void => {
    const reason = messageOf(error);
    if (!isRefusal(error))
      return log.warn('cannot label the lease of the node', { reason, pauseMs });
    if (reason !== refused) log.error(REFUSED, { reason });
    refused = reason;
  };
  await keepDoing(label, tell, { base: 200, cap: 30_000 }, { ...parts, object: node }, stop);
}

async function labelNodeLease(client: KubeClient, name: string, abort: AbortSignal): Promise<void> {
  const options = { namespace: NODE_LEASES, abort, fieldManager: FIELD_MANAGER };
  const labelled = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NODE_LEASES, labels: { [CENTRAL_CORDONING_LABEL]: '' } },
  };
  const lease = await client.patch(leases, name, labelled, {
    ...options,
    type: 'apply',
    force: true,
  });
  if (lease.spec?.holderIdentity) return;
  // A kubelet sets the holder only on a Lease that the kubelet itself created. The agent may have created this Lease,
  // so the agent sets the holder.
  const unchanged = {
    op: 'test',
    path: '/metadata/resourceVersion',
    value: lease.metadata.resourceVersion,
  };
  const holder = { op: 'add', path: '/spec/holderIdentity', value: name };
  // The API server calls the object invalid if the kubelet has created the Lease in the meantime.
  await unlessError(isInvalid)(
    client.patch(leases, name, [unchanged, holder], { ...options, type: 'json' }),
  );
}
