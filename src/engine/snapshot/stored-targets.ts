/** The facts about all targets of a rollout as plain data, which can be written as JSON. */
import type { LateFacts, TargetFacts } from '../model/facts.ts';
import { type Rollout, withStages } from '../model/rollout.ts';
import type { TargetLookup } from '../model/snapshot.ts';

export interface StoredTargets {
  /** The facts of each target, by the key of the target. */
  readonly facts: ReadonlyMap<string, TargetFacts & LateFacts>;
  /** The names of the targets that may already be doing something; undefined if every target may. */
  readonly observable: ReadonlySet<string> | undefined;
}

/** Gathers all facts about all targets of the rollout. An assessment of a large rollout does not need them all. */
export function storedTargets(rollout: Rollout, lookup: TargetLookup): StoredTargets {
  const targets = withStages(rollout).map(({ target }) => target);
  const facts = targets.flatMap(({ key }): [string, TargetFacts & LateFacts][] => {
    const found = lookup.get(key);
    return found === undefined ? [] : [[key, { ...found, ...lateFacts(lookup, key) }]];
  });
  const { observable } = lookup;
  const names = targets.map(({ name }) => name).filter((name) => observable?.has(name) === true);
  return { facts: new Map(facts), observable: observable && new Set(names) };
}

function lateFacts(lookup: TargetLookup, key: string): LateFacts {
  return {
    occupant: lookup.occupantOf(key),
    otherWork: lookup.otherWorkOn(key),
    unnamedCordon: lookup.unnamedCordonOf(key),
    earlierMs: lookup.earlierMsOf(key),
  };
}

/** Returns a lookup that finds the stored facts. */
export function lookupOf({ facts, observable }: StoredTargets): TargetLookup {
  return {
    get: (key) => facts.get(key),
    labelsOf: (key) => facts.get(key)?.labels,
    nodeNameOf: (key) => facts.get(key)?.node?.name,
    occupantOf: (key) => facts.get(key)?.occupant,
    otherWorkOn: (key) => facts.get(key)?.otherWork ?? [],
    unnamedCordonOf: (key) => facts.get(key)?.unnamedCordon,
    earlierMsOf: (key) => facts.get(key)?.earlierMs,
    observable,
  };
}
