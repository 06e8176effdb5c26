/** Compares what a plan and its status shards report about each target with what really happened on the target. */

import type { ApiServer } from '../../../sandbox/api-server/api-server.ts';
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { mergeShards } from '../../../src/dialects/autopilot/plan/status-shards/merge.ts';
import { listsOf } from '../../../src/dialects/autopilot/plan/status-shards/target-lists.ts';
import type { World } from '../../../src/engine/contract/world.ts';
import type { KubeObject, Resource } from '../../../src/kube/resources.ts';
import { V2 } from '../../model/configure.ts';
import type { LabHost } from './lab-host.ts';

export interface Told {
  readonly kind: 'k0supdate' | 'airgapupdate';
  readonly name: string;
  readonly state: string;
}

/** Returns the plan as if it contained everything that its status shards contain now. */
export function wholePlan(server: ApiServer): Plan | undefined {
  const list = <T extends KubeObject>({ group, plural }: Resource<T>): readonly T[] =>
    server.objects(group, plural) as readonly KubeObject[] as readonly T[];
  const world: World = {
    list,
    get: (resource, name) => list(resource).find(({ metadata }) => metadata.name === name),
  };
  const [plan] = list(plans);
  return plan && mergeShards(plan, world).plan;
}

export function toldBy(plan: Plan | undefined): Told[] {
  if (!plan) return [];
  return listsOf(plan).flatMap(({ list: path, entries }) =>
    entries.map(({ name, state }) => ({
      kind: path === 'airgapupdate.workers' ? 'airgapupdate' : 'k0supdate',
      name,
      state,
    })),
  );
}

/**
 * Returns the errors in the record of a plan that is over. A target must be recorded exactly once, and as done only if
 * it is done.
 */
export function untruths(
  told: readonly Told[],
  kind: Told['kind'],
  hosts: readonly LabHost[],
): string[] {
  const own = told.filter((each) => each.kind === kind);
  const foreignTargets = own.filter(({ name }) => !hosts.some((host) => host.name === name));
  return [
    ...foreignTargets.map(({ name }) => `${kind} of ${name} is told`),
    ...hosts.flatMap(({ name, state, bundles }) => {
      const states = own.filter((each) => each.name === name).map((each) => each.state);
      const isDone = kind === 'airgapupdate' ? bundles.has(V2) : state.service?.file === V2;
      const isRight = states.length === 1 && states.includes('SignalCompleted') === isDone;
      return isRight
        ? []
        : [
            `${kind} of ${name} is ${isDone ? '' : 'not '}done, and told as ${states.join(' and ')}`,
          ];
    }),
  ];
}
