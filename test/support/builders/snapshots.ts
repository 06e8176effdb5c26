/** Snapshots for tests: every target exists, runs linux-amd64, is Ready and has no signal; every API server is ready. */

import { ABSENT } from '../../../src/engine/gates/types.ts';
import { answered, NEVER, UNASKED } from '../../../src/engine/model/asked.ts';
import { NO_CONTROLS } from '../../../src/engine/model/controls.ts';
import type { LateFacts, TargetFacts } from '../../../src/engine/model/facts.ts';
import type { Rollout } from '../../../src/engine/model/rollout.ts';
import type { EndpointHealth, Snapshot, TargetLookup } from '../../../src/engine/model/snapshot.ts';
import { withReasonRead } from '../../../src/engine/reasons/recorded.ts';
import { lookupOf } from '../../../src/engine/snapshot/stored-targets.ts';
import { NONE } from './observations.ts';

export const HEALTHY: readonly EndpointHealth[] = [{ name: 'c1', ready: true }];

export function buildFacts(more: Partial<TargetFacts> = {}): TargetFacts {
  const healthy = { ...ABSENT, exists: true, platform: 'linux-amd64', ready: true };
  return { ...healthy, observation: NONE, ...more };
}

/** What differs from a healthy node without a signal. */
export type KnownFacts = Partial<TargetFacts & LateFacts>;

const NOTHING_LATE: LateFacts = {
  occupant: undefined,
  otherWork: [],
  unnamedCordon: undefined,
  earlierMs: undefined,
};

/** Returns the lookup of exactly these targets, by their keys. */
export function buildTargets(facts: Readonly<Record<string, KnownFacts>>): TargetLookup {
  const complete = Object.entries(facts).map(([key, known]): [string, TargetFacts & LateFacts] => [
    key,
    { ...NOTHING_LATE, ...buildFacts(known) },
  ]);
  return lookupOf({ facts: new Map(complete), observable: undefined });
}

/** The parts of the snapshot of a process that asks only the API servers, and that has not asked them yet. */
export const NOTHING_KNOWN: Omit<Snapshot, 'rollout' | 'targets'> = {
  plan: {
    controls: NO_CONTROLS,
    edits: undefined,
    joined: undefined,
    claim: undefined,
    markOwner: undefined,
    awaits: undefined,
    decisions: NEVER,
    preconditions: NEVER,
    rollBack: undefined,
    ofRollBack: undefined,
  },
  abilities: {
    canIgnoreEdits: false,
    canSkip: false,
    canRetry: false,
    leavesLate: false,
    retriedBy: undefined,
    waitsForVersions: false,
    mostBehind: undefined,
    mustDownload: false,
  },
  cluster: { controlPlane: UNASKED, components: NEVER, apiServers: undefined, fleet: undefined },
  outside: {
    health: undefined,
    locks: undefined,
    hooks: undefined,
    budgetPods: NEVER,
    foreignWork: [],
  },
  pace: { kind: 'unknown' },
  term: { failures: undefined, payloadsWatchedMs: undefined, hasRecorded: false },
};

/**
 * Returns a snapshot. `facts` has the differences from a healthy node without a signal, by the key of a target, or by
 * the name for all targets of this name.
 */
export function buildSnapshot(
  rollout: Rollout,
  facts: Readonly<Record<string, KnownFacts>> = {},
  controlPlane: readonly EndpointHealth[] | 'unasked' = HEALTHY,
): Snapshot {
  const all = rollout.stages.flatMap(({ targets }) => targets);
  const health = controlPlane === 'unasked' ? UNASKED : answered(controlPlane);
  return {
    rollout: withReasonRead(rollout),
    ...NOTHING_KNOWN,
    cluster: { ...NOTHING_KNOWN.cluster, controlPlane: health },
    targets: buildTargets(
      Object.fromEntries(all.map(({ key, name }) => [key, facts[key] ?? facts[name] ?? {}])),
    ),
  };
}
