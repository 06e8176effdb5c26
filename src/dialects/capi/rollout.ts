/** Turns a Node with an update request into a rollout of one target, and writes the record back. */
import { machines } from '../../api/capi/machine.ts';
import type { Rollout, Stage } from '../../engine/model/recorded.ts';
import { apiVersionOf } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import { rfc3339 } from '../../util/clock.ts';
import { type MachineUpdate, recordOf, updateOn, withRecord } from './machine-update.ts';

/** Throws for a Node without a request. */
export function resolve(node: Node, now: number): Rollout {
  const update = requestOn(node);
  const record = recordOf(node, update);
  const { uid, machine, requested } = update;
  return {
    source: { apiVersion: apiVersionOf(machines), kind: machines.kind, name: machine, uid, created: requested },
    id: requested,
    phase: record?.phase ?? 'new',
    blocked: record?.blocked ?? false,
    reason: record?.reason,
    stages: [stageOf(update, node.metadata.name, record ?? { state: 'pending', since: rfc3339(now) })],
    problems: [],
  };
}

export function project({ phase, blocked, reason, stages }: Rollout, node: Node): Node {
  const target = stages[0]?.targets[0];
  if (!target) throw new Error(`the rollout of node ${node.metadata.name} has no target`);
  const { uid } = requestOn(node);
  const { state, since } = target;
  return withRecord(node, { uid, phase, blocked, ...(reason ? { reason } : {}), state, since });
}

/** Each Machine is one rollout: Cluster API decides how many run at once. */
function stageOf(
  { version, role, platform, url, sha256 }: MachineUpdate,
  name: string,
  { state, since }: Pick<Stage['targets'][number], 'state' | 'since'>,
): Stage {
  return {
    id: 'machine',
    command: 0,
    role,
    maxInFlight: 1,
    version,
    payloads: { [platform]: { url, ...(sha256 === undefined ? {} : { sha256 }) } },
    forced: false,
    targets: [{ key: name, name, state, since }],
  };
}

function requestOn(node: Node): MachineUpdate {
  const update = updateOn(node);
  if (!update) throw new Error(`node ${node.metadata.name} has no update request`);
  return update;
}
