/**
 * Says how a person tries failed and left-out targets again. Dialects differ in this, so no other text of the engine names
 * `refit retry`.
 */
import type { Abilities } from './snapshot.ts';

type Retried = Pick<Abilities, 'retriedBy'>;

/** Returns an instruction that tries a failed target again. */
export function nodeRetriedBy({ retriedBy }: Retried, name = 'NODE'): string {
  return retriedBy ?? `run refit retry ${name}`;
}

/** Returns an instruction that tries all left-out targets again. */
export function skippedRetriedBy({ retriedBy }: Retried): string {
  return retriedBy ?? 'run refit retry --skipped';
}

/**
 * Returns the event in which a person runs the failed hooks of a plan again; undefined if this is only possible with a new
 * run.
 */
export function hooksRetriedBy({ retriedBy }: Retried, plan: string): string | undefined {
  return retriedBy === undefined ? `somebody runs refit retry ${plan}` : undefined;
}
