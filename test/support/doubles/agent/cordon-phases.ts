/** Cordoning, draining and uncordoning, which the leader does for all nodes or each node for itself. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import {
  type KubeObject,
  leases,
  type Node,
  nodes,
  type Resource,
} from '../../../../src/kube/resources.ts';
import type { SignalData } from '../../../../src/signal/annotations.ts';
import {
  CENTRAL_CORDONING_LABEL,
  type ControlNode,
  controlNodes,
  MODE_ANNOTATION,
} from '../../../../src/signal/names.ts';
import type { Clock } from '../../../../src/util/clock.ts';
import { LEADER_LEASE } from '../runtime/lease-election.ts';
import type { Cache, Controller } from '../runtime/manager.ts';
import type { Times } from '../times.ts';
import { type DrainLimits, drain } from './kubectl-drain.ts';
import { controllerOf, ON_CHANGE, withStatus, writeSignal } from './phase.ts';

export interface CordonParts {
  readonly client: KubeClient;
  readonly cache: Cache;
  readonly clock: Clock;
  readonly times: Times;
  readonly limits: DrainLimits;
  readonly abort: AbortSignal;
  /** Whose events are taken up. */
  readonly owns: (name: string) => boolean;
  /** Whether this process answers for the object; rejects where that cannot be said now. */
  readonly acts: (resource: Resource, object: KubeObject) => Promise<boolean>;
}

/** For the objects of one kind; each pair has one worker, so that drains of a kind are serial. */
export function cordonControllers(parts: CordonParts, resource: Resource): Controller[] {
  const { client, cache, clock, owns, acts } = parts;
  const common = { resource, kind: 'k0supdate', triggers: ON_CHANGE, owns } as const;
  const step = async (
    object: KubeObject,
    signal: SignalData,
    turn: 'cordon' | 'uncordon',
  ): Promise<void> => {
    if (!(await acts(resource, object))) return;
    const node = nodeNameOf(resource, object);
    if (node !== undefined)
      await (turn === 'cordon' ? cordonAndDrain(parts, node) : setUnschedulable(parts, node, null));
    const next = withStatus(signal, turn === 'cordon' ? 'ApplyingUpdate' : 'Completed', clock);
    await writeSignal(client, resource, object, next);
  };
  return [
    controllerOf(
      {
        ...common,
        name: 'cordoning',
        status: 'Cordoning',
        act: async (...given) => await step(...given, 'cordon'),
      },
      cache,
    ),
    controllerOf(
      {
        ...common,
        name: 'uncordoning',
        status: 'UnCordoning',
        act: async (...given) => await step(...given, 'uncordon'),
      },
      cache,
    ),
  ];
}

/** Of the Node that stands behind the object; undefined where there is none to cordon. */
function nodeNameOf(resource: Resource, object: KubeObject): string | undefined {
  if (resource.kind === nodes.kind) return object.metadata.name;
  if (object.metadata.annotations?.[MODE_ANNOTATION] !== 'controller+worker') return undefined;
  const addresses = (object as ControlNode).status?.addresses ?? [];
  return addresses.find(({ type }) => type === 'Hostname')?.address ?? object.metadata.name;
}

async function cordonAndDrain(parts: CordonParts, node: string): Promise<void> {
  await setUnschedulable(parts, node, true);
  await drain(node, parts);
}

/** Whether somebody else had cordoned it before is not remembered. */
async function setUnschedulable(
  { client, cache }: CordonParts,
  name: string,
  wanted: true | null,
): Promise<void> {
  const node: Node | undefined = cache.get(nodes, name);
  if (node === undefined) throw new Error(`there is no Node ${name}`);
  if ((node.spec?.unschedulable ?? null) === wanted) return;
  await client.patch(nodes, name, { spec: { unschedulable: wanted } }, { type: 'strategic' });
}

/** As the leader decides it: pure controllers always, all others where their own lease says that they know of it. */
export function leaderActs(client: KubeClient, own: string | undefined): CordonParts['acts'] {
  return async (resource, object) => {
    const { name, annotations } = object.metadata;
    if (name === own) return true;
    if (resource.kind === controlNodes.kind && annotations?.[MODE_ANNOTATION] === 'controller')
      return true;
    const lease = await client.get(leases, name, { namespace: 'kube-node-lease' });
    return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined;
  };
}

/** As everybody else decides it: unless whoever leads says that it does it. */
export function followerActs(client: KubeClient, clock: Clock): CordonParts['acts'] {
  return async () => {
    const { namespace, name } = LEADER_LEASE;
    const { metadata, spec } = await client.get(leases, name, { namespace });
    const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 0 } = spec ?? {};
    const isExpired = Date.parse(renewTime) + leaseDurationSeconds * 1_000 < clock.now();
    if (holderIdentity === '' || isExpired) throw new Error('nobody leads');
    return metadata.labels?.[CENTRAL_CORDONING_LABEL] !== holderIdentity;
  };
}
