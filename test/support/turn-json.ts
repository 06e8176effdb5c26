/** Compares what Refit derives from a turn and from the same turn that was written as JSON and read back. */
import { assess } from '../../src/engine/assess/assess.ts';
import { explainToPeople } from '../../src/engine/explain/explain.ts';
import { withStages } from '../../src/engine/model/rollout.ts';
import type { Snapshot } from '../../src/engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import {
  fromJson,
  type StoredSnapshot,
  snapshotFrom,
  storedSnapshot,
  toJson,
} from '../../src/engine/snapshot/turn-json.ts';
import { commandsFor } from '../../src/engine/turn/commands.ts';

/** Everything on which an assessment depends. */
export interface RecordedTurn {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

interface StoredTurn extends Omit<RecordedTurn, 'snapshot'> {
  readonly snapshot: StoredSnapshot;
}

export function turnToJson({ snapshot, policy, now }: RecordedTurn): string {
  return toJson({ snapshot: storedSnapshot(snapshot), policy, now });
}

export function turnFromJson(text: string): RecordedTurn {
  const { snapshot, ...turn } = fromJson(text) as StoredTurn;
  return { ...turn, snapshot: snapshotFrom(snapshot) };
}

/** Returns everything that Refit derives from a turn. */
export function outcomeOf({ snapshot, policy, now }: RecordedTurn) {
  const assessment = assess(snapshot, policy, now);
  const { stage, isStopping, isOverBudget, openSlots } = assessment;
  return {
    fields: { stage, isStopping, isOverBudget, openSlots },
    evaluations: withStages(snapshot.rollout).map((each) => assessment.of(each.stage, each.target)),
    commands: commandsFor(assessment),
    explanation: explainToPeople(assessment),
  };
}
