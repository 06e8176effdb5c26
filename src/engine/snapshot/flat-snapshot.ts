/** Reads the snapshots in the files of earlier releases, which had all fields in a row and left out what they did not know. */
import { NEVER, UNASKED } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { LateFacts, TargetFacts } from '../model/facts.ts';
import type { Rollout } from '../model/rollout.ts';
import type {
  Abilities,
  ClusterFacts,
  OutsideFacts,
  Pace,
  PlanFacts,
  TermFacts,
} from '../model/snapshot.ts';
import type { StoredTargets } from './stored-targets.ts';

type Fields = PlanFacts & Abilities & ClusterFacts & OutsideFacts & TermFacts;

export interface FlatSnapshot extends Partial<Fields> {
  readonly rollout: Rollout;
  readonly facts: ReadonlyMap<string, TargetFacts & Partial<LateFacts>>;
  readonly observable?: ReadonlySet<string>;
  readonly paceMs?: number;
  readonly usualMs?: number;
  readonly fastMs?: number;
  readonly earlierMs?: Readonly<Record<string, number>>;
}

interface Parts {
  readonly rollout: Rollout;
  readonly plan: PlanFacts;
  readonly abilities: Abilities;
  readonly cluster: ClusterFacts;
  readonly outside: OutsideFacts;
  readonly pace: Pace;
  readonly term: TermFacts;
  readonly targets: StoredTargets;
}

/** Returns the parts of the snapshot. */
export function fromFlat(flat: FlatSnapshot): Parts {
  return {
    rollout: flat.rollout,
    plan: {
      controls: flat.controls ?? NO_CONTROLS,
      edits: flat.edits,
      joined: flat.joined,
      claim: flat.claim,
      markOwner: flat.markOwner,
      awaits: flat.awaits,
      decisions: flat.decisions ?? NEVER,
      preconditions: flat.preconditions ?? NEVER,
      rollBack: flat.rollBack,
      ofRollBack: undefined,
    },
    abilities: {
      canIgnoreEdits: flat.canIgnoreEdits === true,
      canSkip: flat.canSkip === true,
      canRetry: flat.canRetry === true,
      leavesLate: flat.leavesLate === true,
      retriedBy: flat.retriedBy,
      waitsForVersions: flat.waitsForVersions === true,
      mostBehind: flat.mostBehind,
      mustDownload: flat.mustDownload === true,
    },
    cluster: {
      controlPlane: flat.controlPlane ?? UNASKED,
      components: flat.components ?? NEVER,
      apiServers: flat.apiServers,
      fleet: flat.fleet,
    },
    outside: {
      health: flat.health,
      locks: flat.locks,
      hooks: flat.hooks,
      budgetPods: flat.budgetPods ?? NEVER,
      foreignWork: flat.foreignWork ?? [],
    },
    pace: paceOf(flat),
    term: {
      failures: flat.failures,
      payloadsWatchedMs: flat.payloadsWatchedMs,
      hasRecorded: flat.hasRecorded === true,
    },
    targets: targetsOf(flat),
  };
}

function paceOf({ paceMs: mostMs, usualMs, fastMs, earlierMs }: FlatSnapshot): Pace {
  if (mostMs !== undefined && usualMs !== undefined && fastMs !== undefined)
    return { kind: 'measured', mostMs, usualMs, fastMs };
  return earlierMs === undefined
    ? { kind: 'unknown' }
    : { kind: 'earlier', mostMsByStage: earlierMs };
}

function targetsOf({ facts, observable }: FlatSnapshot): StoredTargets {
  const complete = [...facts].map(([key, known]): [string, TargetFacts & LateFacts] => [
    key,
    {
      ...known,
      occupant: known.occupant,
      otherWork: known.otherWork ?? [],
      unnamedCordon: known.unnamedCordon,
      earlierMs: known.earlierMs,
    },
  ]);
  return { facts: new Map(complete), observable };
}
