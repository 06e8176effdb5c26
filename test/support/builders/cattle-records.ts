/** Builds Nodes with the records that the leader writes before it records the states of targets of a Rancher Plan. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { withAttempt } from '../../../src/dialects/cattle/plan/node-records.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { World } from '../../../src/engine/contract/world.ts';
import { type Rollout, withStages } from '../../../src/engine/model/rollout.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { later } from '../clock/times.ts';

/** Returns the Node of an attempt that began at `since`. */
export function begun(node: Node, plan: CattlePlan, hash: string, since: string = later(0)): Node {
  const target = { key: '', name: node.metadata.name, state: 'intended', since } as const;
  return withAttempt(node, plan, target, { hash, version: '', isBegun: false });
}

/** Returns the Nodes as the leader writes them before it records the rollout. */
export function afterRecord(
  { signal }: Pick<Dialect<CattlePlan>, 'signal'>,
  world: World,
  rollout: Rollout | undefined,
  plan: CattlePlan,
  all: readonly Node[],
): Node[] {
  const changed = new Map(all.map((node) => [node.metadata.name, node]));
  for (const { stage, target } of rollout ? withStages(rollout) : []) {
    if (!rollout || (target.state !== 'done' && target.state !== 'intended')) continue;
    const instruction =
      target.state === 'done'
        ? signal.finish?.(world, rollout, stage, target, plan)
        : signal.remember?.(world, rollout, stage, target, plan);
    if (instruction?.kind === 'replace') changed.set(target.name, instruction.object);
  }
  return [...changed.values()];
}
