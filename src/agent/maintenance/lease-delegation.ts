/** Labels the node's own lease: only a node whose lease has the label is drained by a leader that cordons centrally. */
import type { KubeClient } from '../../kube/client.ts';
import { leases } from '../../kube/resources.ts';
import { ifAllowed, ifFound, isInvalid, isRefusal } from '../../kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { messageOf, unlessError } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { keepDoing, type SignalObject } from '../object/signal-object.ts';

const NODE_LEASES = 'kube-node-lease';
/** The original's field manager, so that the label has one owner, whichever agent writes it. */
const FIELD_MANAGER = 'k0s/autopilot';
const REFUSED =
  "may not label the node's Lease: without that label this agent drains the node; let it patch the Lease";

export type LeaseDelegation = ReturnType<typeof leaseDelegation>;

export function leaseDelegation(client: KubeClient) {
  let isRefused = false;
  /** Sets the label. May be repeated; rejects when the API server refuses or does not answer. */
  const offer = async (name: string, abort: AbortSignal): Promise<void> => {
    await labelNodeLease(client, name, abort).catch((error: unknown) => {
      isRefused ||= isRefusal(error);
      throw error;
    });
    isRefused = false;
  };
  return {
    offer,
    /** False when the lease lacks the label and the API server refused it: then no leader drains the node. True if it may not be read. */
    async isExpected(name: string, abort: AbortSignal): Promise<boolean> {
      const found = ifFound(client.get(leases, name, { namespace: NODE_LEASES, abort }));
      const isLabelled = found.then(
        (lease) => lease?.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined,
      );
      // The node and a leader may then wait for each other, which does no harm.
      if ((await ifAllowed(isLabelled)) ?? true) return true;
      // A lease that was deleted, or comes from a backup, has lost it.
      if (!isRefused) await offer(name, abort);
      return !isRefused;
    },
  };
}

export interface DelegationParts extends Tools {
  /** The Node; somebody else follows it. */
  readonly node: SignalObject;
  readonly delegation: Pick<LeaseDelegation, 'offer'>;
}

/** Keeps the label on the lease until `stop` aborts; never rejects. A refusal may pass: rights may be granted. */
export async function keepDelegated(parts: DelegationParts, stop: AbortSignal): Promise<void> {
  const { node, delegation, log } = parts;
  let labelled: string | undefined;
  let refused: string | undefined;
  const label = async (): Promise<undefined> => {
    // The lease goes with its Node.
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
  // A kubelet sets the holder only on leases that it created, and this one may be ours.
  const unchanged = {
    op: 'test',
    path: '/metadata/resourceVersion',
    value: lease.metadata.resourceVersion,
  };
  const holder = { op: 'add', path: '/spec/holderIdentity', value: name };
  // Invalid: the kubelet was faster.
  await unlessError(isInvalid)(
    client.patch(leases, name, [unchanged, holder], { ...options, type: 'json' }),
  );
}
