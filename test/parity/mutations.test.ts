/**
 * Tests that our checks detect the weaknesses of the original. Each check passes for the real part, and fails for the
 * part without its guard.
 */
import { expect, test } from 'vitest';
import { AGENT_MUTATIONS } from './agent-mutations.ts';
import { DIALECT_MUTATIONS } from './dialect-mutations.ts';
import { LEADER_MUTATIONS } from './leader-mutations.ts';
import { MODEL_MUTATIONS } from './model-mutations.ts';
import type { Mutation } from './mutation.ts';

const ALL: readonly Mutation[] = [
  ...DIALECT_MUTATIONS,
  ...AGENT_MUTATIONS,
  ...LEADER_MUTATIONS,
  ...MODEL_MUTATIONS,
];
const byWeakness = ALL.toSorted((a, b) => a.weakness - b.weakness);

test.each(byWeakness)(
  '#$weakness comes back without $without',
  async ({ checkReal, checkMutated, complaint }) => {
    expect(await checkReal()).toBeUndefined();
    expect(await checkMutated()).toBe(complaint);
  },
);
