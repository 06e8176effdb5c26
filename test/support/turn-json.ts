/**
 * Writes a snapshot as JSON, with the policy and the time of its assessment, and reads it back, so that a turn can be
 * replayed.
 */
import { assess } from '../../src/engine/assess/assess.ts';
import { explainToPeople } from '../../src/engine/explain/explain.ts';
import type { Snapshot, TargetFacts } from '../../src/engine/model/decision.ts';
import { withStages } from '../../src/engine/model/rollout.ts';
import type { RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import { commandsFor } from '../../src/engine/turn/commands.ts';

/** Everything on which an assessment depends. */
export interface RecordedTurn {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Includes the facts of all targets. An assessment of a large rollout does not collect them all. */
export function turnToJson({ snapshot, policy, now }: RecordedTurn): string {
  const targets = withStages(snapshot.rollout).map(({ target }) => target);
  const facts = new Map<string, TargetFacts>();
  for (const { key } of targets) {
    const found = snapshot.facts.get(key);
    if (found) facts.set(key, found);
  }
  const { observable } = snapshot;
  const names = targets.map(({ name }) => name).filter((name) => observable?.has(name) === true);
  const recorded = { ...snapshot, facts, observable: observable && new Set(names) };
  return JSON.stringify({ snapshot: recorded, policy, now }, encoded);
}

export function turnFromJson(text: string): RecordedTurn {
  return JSON.parse(text, decoded) as RecordedTurn;
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

/**
 * The name of the only member of an object that represents a value that JSON lacks. No field of a snapshot has this
 * name.
 */
const KIND = '$refit';

function encoded(_name: string, value: unknown): unknown {
  if (value instanceof Map) return { [KIND]: 'map', entries: [...value] };
  if (value instanceof Set) return { [KIND]: 'set', entries: [...value] };
  if (typeof value === 'number' && !Number.isFinite(value))
    return { [KIND]: 'number', text: String(value) };
  return value;
}

function decoded(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, KIND)) return value;
  const { [KIND]: kind, entries = [], text = '' } = value as Encoded;
  if (kind === 'map') return new Map(entries as [unknown, unknown][]);
  if (kind === 'set') return new Set(entries);
  return kind === 'number' ? Number(text) : value;
}

interface Encoded {
  readonly [KIND]: unknown;
  readonly entries?: readonly unknown[];
  readonly text?: string;
}
