/**
 * Runs one pass of a leader over a Plan, for tests: returns what the leader records, and which targets it signals after
 * that.
 */

import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { World } from '../../../src/engine/contract/world.ts';
import { answered } from '../../../src/engine/model/asked.ts';
import type { EndpointHealth, Snapshot } from '../../../src/engine/model/snapshot.ts';
import { DEFAULT_POLICY } from '../../../src/engine/policy/rollout-policy.ts';
import { gather } from '../../../src/engine/snapshot/gather.ts';
import { MINUTE, T0 } from '../clock/times.ts';
import { decide } from './decisions.ts';
import { HEALTHY } from './snapshots.ts';

export const PASS_TIME = T0 + MINUTE;

export interface Pass {
  readonly plan: Plan;
  readonly world: World;
  readonly health?: readonly EndpointHealth[];
}

export interface Passed {
  /** The plan as the leader recorded it; the same object if the leader recorded nothing. */
  readonly plan: Plan;
  /** Names, in the order in which they are signalled. */
  readonly signalled: readonly string[];
}

/** Runs a pass as a new leader, which knows only what the objects say. */
export function passOver(
  { plan, world, health = HEALTHY }: Pass,
  dialect: Dialect<Plan> = autopilot,
): Passed {
  const seen = (as: Plan): Snapshot =>
    gather(dialect, as, world, PASS_TIME, {
      controlPlane: answered(health),
      preconditions: answered([]),
    });
  const { record } = decide(seen(plan), DEFAULT_POLICY, PASS_TIME);
  const recorded = record ? dialect.project(record, plan, PASS_TIME) : plan;
  const { signals } = decide(seen(recorded), DEFAULT_POLICY, PASS_TIME);
  return { plan: recorded, signalled: signals.map(({ target }) => target.name) };
}

/**
 * Returns the state of the plan, and the states of its targets by name, without the prefix `Signal`. The name of a
 * bundle is `bundle/<name>`. If the plan has several commands, each name begins with `<command>/`.
 */
export function wordsOf({ status }: Plan): Readonly<Record<string, string>> {
  const { state = '', commands = [] } = status ?? {};
  const targets = commands.flatMap(({ id, k0supdate, airgapupdate }) => {
    const bundles = (airgapupdate?.workers ?? []).map((entry) => ({
      ...entry,
      name: `bundle/${entry.name}`,
    }));
    return [...bundles, ...(k0supdate?.controllers ?? []), ...(k0supdate?.workers ?? [])].map(
      ({ name, state: word }) => [
        commands.length > 1 ? `${id}/${name}` : name,
        word.replace('Signal', ''),
      ],
    );
  });
  return { state, ...(Object.fromEntries(targets) as Record<string, string>) };
}
