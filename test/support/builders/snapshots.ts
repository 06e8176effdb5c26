/** Snapshots for tests: every target exists, runs linux-amd64, is Ready and has no signal; every API server is ready. */

import { ABSENT } from '../../../src/engine/gates/types.ts';
import { answered, NEVER, UNASKED } from '../../../src/engine/model/asked.ts';
import { NO_CONTROLS } from '../../../src/engine/model/controls.ts';
import type { TargetFacts } from '../../../src/engine/model/facts.ts';
import type { Rollout } from '../../../src/engine/model/rollout.ts';
import type { EndpointHealth, Snapshot } from '../../../src/engine/model/snapshot.ts';
import { NONE } from './observations.ts';

export const HEALTHY: readonly EndpointHealth[] = [{ name: 'c1', ready: true }];

export function buildFacts(more: Partial<TargetFacts> = {}): TargetFacts {
  const healthy = { ...ABSENT, exists: true, platform: 'linux-amd64', ready: true };
  return { ...healthy, observation: NONE, ...more };
}

/** The answers of a process that asks nothing but the API servers. */
export const NOTHING_ASKED = {
  controlPlane: UNASKED,
  components: NEVER,
  decisions: NEVER,
  budgetPods: NEVER,
  preconditions: NEVER,
} as const;

/**
 * Returns a snapshot. `facts` has the differences from a healthy node without a signal, by the key of a target, or by
 * the name for all targets of this name.
 */
export function buildSnapshot(
  rollout: Rollout,
  facts: Readonly<Record<string, Partial<TargetFacts>>> = {},
  controlPlane: readonly EndpointHealth[] | 'unasked' = HEALTHY,
): Snapshot {
  const all = rollout.stages.flatMap(({ targets }) => targets);
  return {
    rollout,
    facts: new Map(all.map(({ key, name }) => [key, buildFacts(facts[key] ?? facts[name])])),
    ...NOTHING_ASKED,
    controlPlane: controlPlane === 'unasked' ? UNASKED : answered(controlPlane),
    foreignWork: [],
    controls: NO_CONTROLS,
  };
}
