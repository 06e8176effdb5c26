/**
 * Says before Cluster API marks a Machine whether the plan of its owner waits for something that may take long: a person, a
 * window, or a failure that somebody must repair. A Machine that waits after it was marked uses up the room of its owner,
 * and gets no other version meanwhile.
 */
import type { Machine } from '../../../api/capi/machine.ts';
import type { ReasonCode } from '../../../engine/model/reasons.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import { platformOf } from '../../../engine/snapshot/gather.ts';
import type { Node } from '../../../kube/resources.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import type { Clock } from '../../../util/clock.ts';
import { findRollout, type MachineOwners, withOwnedRequest } from './machine-owners.ts';
import type { RulesOf } from './machine-rules.ts';
import type { MachineUpdate } from './machine-update.ts';
import { type ClusterOf, waitBeforeStart } from './progress.ts';

/** An update that Cluster API asks about, of a Machine with its Node. */
export interface AskedUpdate {
  readonly machine: Machine;
  readonly node: Node;
  readonly version: string;
  readonly role: Role;
}

/**
 * Resolves with what the updates wait for, if none of them may start now and the wait may take long; otherwise with
 * undefined. All updates are of one owner.
 */
export type OwnerWait = (
  asked: readonly AskedUpdate[],
  abort: AbortSignal,
) => Promise<string | undefined>;

/** The update waits for its owner, so nothing is marked yet. Cluster API asks again. */
export class OwnerWaits extends Error {}

interface Parts {
  readonly owners: MachineOwners;
  readonly clusterOf: ClusterOf;
  readonly rulesOf: RulesOf;
  readonly clock: Clock;
}

/**
 * The waits that may take long. The approval of a wave is not one of them, because only a plan that exists can be
 * approved, and the first Machine makes the plan.
 */
const LONG: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  'Aborted',
  'Blackout',
  'ControlsUnproved',
  'FinishingInFlight',
  'Held',
  'Paused',
  'PausedByFailures',
  'Pinned',
  'PolicyUnreadable',
  'RecordUnread',
  'WavesSplit',
  'WindowClosed',
  'WindowTooShort',
]);
/** The waits of one Machine, while other Machines of the same owner may start. */
const OF_ONE: ReadonlySet<ReasonCode> = new Set<ReasonCode>(['Held', 'Pinned']);
/** The most Machines of one owner that are looked at, because the caller waits for the answer. */
const MOST = 20;

export function ownerWaits(parts: Parts): OwnerWait {
  return async (asked, abort) => {
    const [first] = asked;
    const owner = first && (await parts.owners.of(first.machine, abort));
    if (first === undefined || owner === undefined) return undefined;
    const cluster = parts.clusterOf(first.machine);
    const all = (await listNodes(cluster.workload, { abort })).items;
    const { owners } = parts;
    const rollout = await findRollout(owners, all, first.machine, owner, first.version, abort);
    const names = rollout.isNew
      ? await parts.owners.nodesOf(first.machine, owner, first.version, abort)
      : [];
    let found: string | undefined;
    for (const { machine, node, version, role } of asked.slice(0, MOST)) {
      const update: MachineUpdate = {
        uid: 'asked',
        machine: `${machine.metadata.namespace}/${machine.metadata.name}`,
        version,
        role,
        requested: new Date(parts.clock.now()).toISOString(),
        platform: platformOf(node) ?? 'unknown',
        url: 'asked',
        rules: await parts.rulesOf(machine, abort),
      };
      const wait = await waitBeforeStart(
        { ...cluster, clock: parts.clock, abort },
        withOwnedRequest(node, update, owner, rollout, names),
      );
      if (wait === undefined || !LONG.has(wait.code)) return undefined;
      found ??= `${owner.kind} ${owner.name} waits: ${wait.message}`;
      if (!OF_ONE.has(wait.code)) return found;
    }
    return found;
  };
}
