/**
 * Proves which controllers are asked for a snapshot of etcd: each controller that starts before any controller is done.
 */
import { describe, expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { RecordedState, Stage } from '../../../engine/model/rollout.ts';
import { agentPolicyFor } from '../../../signal/annotations.ts';
import { signal } from './autopilot-signal.ts';

const payload = { url: 'https://example.com/k0s', sha256: 'ab'.repeat(32) };

describe('the snapshot of etcd', () => {
  const agent = { soakMs: 0, etcdSnapshot: { keep: 3 } };
  const controllers = (state: RecordedState) => [
    buildTarget('c1', 'intended', { since: later(1000) }),
    buildTarget('c2', state),
  ];
  const policyOf = (of: Stage): object => {
    const objects = [buildNode('c1')];
    const world = buildWorld(objects, [buildControlNode('c1')]);
    const [whom = buildTarget('w1', 'intended', { since: later(1000) })] = of.targets;
    const sent = signal.send(
      world,
      buildRollout([], { id: 'id1' }),
      { stage: of, target: whom, payload, agent },
      {
        metadata: { name: 'autopilot' },
      },
    );
    const { annotations } = sent?.kind === 'replace' ? sent.object.metadata : {};
    return agentPolicyFor(annotations, whom.since);
  };

  test.each<[string, Stage, boolean]>([
    ['the first controller', buildStage('controller', controllers('pending')), true],
    ['after one that failed', buildStage('controller', controllers('failed')), true],
    ['after one that is done', buildStage('controller', controllers('done')), false],
    ['a worker', buildStage('worker', controllers('pending')), false],
    [
      'a bundle',
      buildStage('controller', controllers('pending'), { procedure: 'airgapupdate' }),
      false,
    ],
  ])('%s', (_, of, isAsked) => {
    const { etcdSnapshot, ...others } = agent;
    expect(policyOf(of)).toEqual(isAsked ? { ...others, etcdSnapshot } : others);
  });
});
