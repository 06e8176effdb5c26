/**
 * Tests that two leaders can never both write, in spite of partitions, halted processes, clock drift, and lost or late
 * requests.
 */
import { expect, test } from 'vitest';
import type { Term, WriteGuard } from '../../src/kube/election/write-guard.ts';
import { WHOLE } from '../support/whole.ts';
import { runElectionWorld, type Verdict, type WorldOptions } from './election-world.ts';

const SEEDS = Array.from({ length: WHOLE ? 20 : 6 }, (_, index) => 1_000 + index);

async function verdicts(options: Omit<WorldOptions, 'seed' | 'candidates'>): Promise<Verdict[]> {
  const all: Verdict[] = [];
  for (const seed of SEEDS) {
    const verdict = await runElectionWorld({ ...options, seed, candidates: 2 + (seed % 2) });
    all.push({
      ...verdict,
      violations: verdict.violations.map((violation) => `seed ${seed}: ${violation}`),
    });
  }
  return all;
}

function summary(all: readonly Verdict[]): { violations: string[]; terms: number; writes: number } {
  return {
    violations: all.flatMap(({ violations }) => violations),
    terms: Math.min(...all.map(({ terms }) => terms)),
    writes: Math.min(...all.map(({ accepted }) => accepted.length)),
  };
}

test.each<[string, Omit<WorldOptions, 'seed' | 'candidates'>]>([
  [
    'requests arrive soon or never: the write guard is enough',
    { network: 'prompt', precondition: 'none' },
  ],
  [
    'requests last as long as their connection: so is the deadline',
    { network: 'patient', precondition: 'none' },
  ],
  [
    'requests arrive whenever they like: the version keeps them out',
    { network: 'late', precondition: 'version' },
  ],
])('%s', async (_name, options) => {
  const { violations, terms, writes } = summary(await verdicts(options));
  expect(violations).toEqual([]);
  // With fewer terms or writes, the run would prove nothing.
  expect(terms).toBeGreaterThan(10);
  expect(writes).toBeGreaterThan(200);
});

/** Works like the real write guard, but sets no time limit for a write. */
const unbounded = (election: WriteGuard): WriteGuard => ({
  term: () => election.term(),
  beginWrite: () => {
    const guard = election.beginWrite();
    return guard && { deadlineMs: 60_000, end: (known) => guard.end(known) };
  },
});

/** A faulty write guard that considers a term valid for ever once it was won. */
const believing = (election: WriteGuard): WriteGuard => {
  let last: Term | undefined;
  const term = (): Term | undefined => {
    last = election.term() ?? last;
    return last;
  };
  return { term, beginWrite: () => term() && { deadlineMs: 30_000, end: () => undefined } };
};

test.each<[string, Omit<WorldOptions, 'seed' | 'candidates'>]>([
  ['writes without an end', { network: 'patient', precondition: 'none', writeGuard: unbounded }],
  [
    'a leader that never looks whether it still is one',
    { network: 'prompt', precondition: 'none', writeGuard: believing },
  ],
  ['late requests without a version', { network: 'late', precondition: 'none' }],
])('the judge would see %s', async (_name, options) => {
  expect(summary(await verdicts(options)).violations).not.toEqual([]);
});
