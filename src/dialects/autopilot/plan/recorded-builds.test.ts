/** Tests that the history stores the build that a k0s worker ran before a run, although no kubelet of k0s reports it. */
import { expect, test } from 'vitest';
import { working } from '../../../../test/support/builders/observations.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { runVersions, versionsBeforeSince } from '../../../engine/explain/run-versions.ts';

const VAGUE = 'v1.36.3+k0s';
const BUILD = 'v1.36.3+k0s.0';
const STAGE_VERSION = 'v1.36.3+k0s.2';

function since(
  earlier: Parameters<typeof versionsBeforeSince>[1],
  from: Readonly<Record<string, string>>,
) {
  const targets = ['w1', 'w2'].map((name) => buildTarget(name, 'done'));
  const rollout = buildRollout([
    { ...buildStage('worker', [...targets, buildTarget('w3')]), version: STAGE_VERSION },
  ]);
  const facts = Object.fromEntries(
    Object.entries(from).map(([name, version]) => [
      name,
      {
        observation: {
          kind: 'working' as const,
          attempt: 'x',
          since: 'x',
          step: 'Restart',
          report: { from: version },
        },
      },
    ]),
  );
  return versionsBeforeSince(buildSnapshot(rollout, facts), earlier);
}

test('a build that an agent reports later replaces the version of a kubelet that has no build', () => {
  const nodes = ['w1', 'w2', 'w3'];
  expect(since([{ role: 'worker', version: VAGUE, nodes }], { w1: BUILD, w3: BUILD })).toEqual([
    { role: 'worker', version: BUILD, nodes: ['w1'] },
    { role: 'worker', version: VAGUE, nodes: ['w2', 'w3'] },
  ]);
  expect(
    since(
      [
        { role: 'worker', version: BUILD, nodes: ['w1'] },
        { role: 'worker', version: VAGUE, nodes: ['w2', 'w3'] },
      ],
      { w1: VAGUE, w2: BUILD },
    ),
  ).toEqual([
    { role: 'worker', version: BUILD, nodes: ['w1', 'w2'] },
    { role: 'worker', version: VAGUE, nodes: ['w3'] },
  ]);
  expect(since([{ role: 'worker', nodes: ['w1'] }], { w1: BUILD })).toEqual([
    { role: 'worker', version: BUILD, nodes: ['w1'] },
  ]);
});

test.each<[string, string, Readonly<Record<string, string>>]>([
  ['a precise version and a vague report', BUILD, { w1: VAGUE }],
  ['a precise version and another build', BUILD, { w1: 'v1.36.3+k0s.1' }],
  ['a version of another release', VAGUE, { w1: 'v1.36.2+k0s.0' }],
  ['a second attempt, which starts from the version of the run', VAGUE, { w1: STAGE_VERSION }],
])('%s change nothing in the record of the run', (_name, version, from) => {
  const earlier = [{ role: 'worker' as const, version, nodes: ['w1', 'w2'] }];
  expect(since(earlier, from)).toEqual(earlier);
  expect(since(undefined, from)).toBeUndefined();
});

test('an entry for all other nodes keeps its version, because these nodes may have run different builds', () => {
  const earlier = [{ role: 'worker' as const, version: VAGUE, others: true as const }];
  expect(since(earlier, { w1: BUILD })).toEqual(earlier);
});

test('the version of a kubelet that may belong to the release of the plan is not recorded for a node that may have changed it', () => {
  const beforeOf = (version: string) => {
    const stage = {
      ...buildStage('worker', [buildTarget('w1', 'intended')]),
      version: STAGE_VERSION,
    };
    const facts = { w1: { version, observation: working('Restart') } };
    return runVersions(buildSnapshot(buildRollout([stage]), facts)).before;
  };
  expect(beforeOf(VAGUE)).toEqual([{ role: 'worker', nodes: ['w1'] }]);
  expect(beforeOf(BUILD)).toEqual([{ role: 'worker', version: BUILD, nodes: ['w1'] }]);
});
