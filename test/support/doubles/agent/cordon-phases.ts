/** The steps cordon, drain and uncordon. Either the leader does them for all nodes, or each node does them for itself. */
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
  /** Reports whether the process handles the events of the object with this name. */
  readonly owns: (name: string) => boolean;
  /** Reports whether this process is responsible for the object. Rejects if that is unknown at the moment. */
  readonly acts: (resource: Resource, object: KubeObject) => Promise<boolean>;
}

/**
 * Returns the controllers for the objects of one kind. Each pair of controllers has one worker, so the drains of a kind
 * run one after the other.
 */
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

/** Returns the name of the Node that belongs to the object; undefined if there is no Node to cordon. */
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

/** Sets or removes the cordon. It does not remember whether somebody else had cordoned the Node before. */
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

/**
 * Decides as the leader. The leader is responsible for itself, for every pure controller, and for every other object
 * whose own Lease has the label for central cordoning.
 */
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

/**
 * Decides as a process that is not the leader. The process is responsible unless the leader has declared on its Lease
 * that it cordons centrally.
 */
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
