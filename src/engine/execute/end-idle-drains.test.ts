/** Tests which drains of this leader continue, and which drains end because no target needs them any more. */
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later } from '../../../test/support/clock/times.ts';
import type { Drains } from '../../drain/running-drains.ts';
import type { Observation } from '../model/facts.ts';
import { ownerOf, type Target } from '../model/rollout.ts';
import { endIdleDrains } from './run-node-actions.ts';

const target = buildTarget('w1', 'intended');
const rollout = buildRollout([buildStage('worker', [target])]);
const OWNER = ownerOf(rollout, target);

describe('a drain that runs', () => {
  const asking: Observation = {
    kind: 'working',
    step: 'Cordoning',
    waitsFor: 'drain',
    attempt: later(0),
    since: later(0),
  };

  /**
   * Returns which of these drains are kept: the drains of the own rollout on `w1` and `w2`, and the drain of another
   * rollout on `w2`.
   */
  function kept(observation: Observation, state: Target['state'] = 'intended', heldBy?: string) {
    const one = buildTarget('w1', state);
    const running = buildRollout([buildStage('worker', [one])]);
    const node = { name: 'w1', unschedulable: true, cordonOwner: OWNER, taintOwner: undefined };
    const snapshot = buildSnapshot(running, { w1: { observation, node } });
    const policy = buildPolicy(heldBy === undefined ? {} : { heldBy });
    const found: string[] = [];
    const entries = [
      ['w1', ownerOf(running, one)],
      ['w2', ownerOf(running, one)],
      ['w2', 'another-uid/another-run'],
    ] as const;
    const drains = {
      keep: (isWanted: (node: string, owner: string) => boolean) =>
        void found.push(
          ...entries
            .filter(([node, owner]) => isWanted(node, owner))
            .map(([node, owner]) => `${node} ${owner === OWNER ? 'own' : 'other'}`),
        ),
    } as unknown as Drains;
    endIdleDrains({ drains }, { snapshot, policy, now: 0 });
    return found;
  }

  test('goes on while its target asks for it; drains of other rollouts always do', () => {
    expect(kept(asking)).toEqual(['w1 own', 'w2 other']);
  });

  test('needs no end where this leader drains nothing', () => {
    const snapshot = buildSnapshot(rollout);
    expect(() => endIdleDrains({}, { snapshot, policy: buildPolicy(), now: 0 })).not.toThrow();
  });

  test.each<[string, Parameters<typeof kept>]>([
    ['is at another step', [{ ...asking, waitsFor: undefined }]],
    ['waits to be uncordoned', [{ ...asking, waitsFor: 'uncordon' }]],
    ['has done nothing yet', [{ kind: 'none' }]],
    ['is recorded as failed', [asking, 'failed']],
    ['belongs to a plan that another object holds', [asking, 'intended', 'somebody else']],
  ])('ends once its target %s', (_what, given) => {
    expect(kept(...given)).toEqual(['w2 other']);
  });
});
