/** Tests which cordoned nodes people are told about, because Refit does not uncordon them. */
import { expect, test } from 'vitest';
import { sent, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { DrainPolicy } from '../policy/rollout-policy.ts';
import { keptCordons } from './kept-cordons.ts';

const NODE = { name: 'w1', unschedulable: true, cordonOwner: undefined, taintOwner: undefined };
const BEFORE =
  'w1 stays cordoned after its attempt: it was cordoned before the attempt, and not by Refit';
const SINCE = 'w1 is cordoned, and not by Refit: somebody cordoned it before its attempt or since';
const OWN_CORDON = { ...working('Restart'), ownsCordon: true } as const;
const OTHER_AGENT = { ours: false, title: 'kit', lacks: 'roll-back' };

interface Given {
  readonly rollout?: Partial<Rollout>;
  readonly drain?: Partial<DrainPolicy>;
}

function kept(state: RecordedState, facts: KnownFacts, { rollout, drain }: Given = {}) {
  const stage = buildStage('worker', [buildTarget('w1', state)]);
  const snapshot = buildSnapshot(buildRollout([stage], rollout), { w1: { node: NODE, ...facts } });
  const policy = buildPolicy({ drain: { ...buildPolicy().drain, ...drain } });
  return keptCordons({ snapshot, policy });
}

test.each<[string, RecordedState, KnownFacts, string | undefined, Given?]>([
  ['done, and was cordoned before', 'done', { unnamedCordon: 'found' }, BEFORE],
  ['done, and nobody knows who cordoned it', 'done', {}, SINCE],
  ['done, and nobody can know who cordoned it', 'done', { unnamedCordon: 'unknown' }, SINCE],
  ['done, also after the end', 'done', {}, SINCE, { rollout: { phase: 'done' } }],
  ['done, whatever the policy says', 'done', {}, SINCE, { drain: { uncordon: 'always' } }],
  ['pending', 'pending', {}, BEFORE],
  ['pending, and nobody can know who cordoned it', 'pending', { unnamedCordon: 'unknown' }, BEFORE],
  ['pending, and was cordoned by Refit', 'pending', { unnamedCordon: 'ours' }, undefined],
  ['pending, and has its signal already', 'pending', { observation: sent() }, undefined],
  ['pending after the end', 'pending', {}, undefined, { rollout: { phase: 'failed' } }],
  ['in progress', 'intended', { observation: sent() }, BEFORE],
  ['in progress, and was cordoned before', 'intended', { unnamedCordon: 'found' }, BEFORE],
  ['in progress, and was cordoned by Refit', 'intended', { unnamedCordon: 'ours' }, undefined],
  ['in progress, and nobody can know', 'intended', { unnamedCordon: 'unknown' }, undefined],
  ['in progress after the end', 'intended', {}, undefined, { rollout: { phase: 'failed' } }],
  ['in progress, with a cordon of its agent', 'intended', { observation: OWN_CORDON }, undefined],
  ['in progress, with another cordon', 'intended', { observation: working('Restart') }, BEFORE],
  ['in progress, with an agent of another product', 'intended', { agent: OTHER_AGENT }, undefined],
  [
    'in progress, with the agent of Refit',
    'intended',
    { agent: { ours: true, title: 'Refit' } },
    BEFORE,
  ],
  [
    'in progress, and the policy removes every cordon',
    'intended',
    {},
    undefined,
    { drain: { uncordon: 'always' } },
  ],
  ['failed', 'failed', {}, undefined],
  ['failed, and was cordoned before', 'failed', { unnamedCordon: 'found' }, undefined],
  ['done, and not cordoned', 'done', { node: { ...NODE, unschedulable: false } }, undefined],
  ['done, and has a cordon of Refit', 'done', { node: { ...NODE, cordonOwner: 'x' } }, undefined],
  ['done, and has no Node', 'done', { node: undefined }, undefined],
])('what is said of a node that is %s', (_title, state, facts, message, given) => {
  expect(kept(state, facts, given)).toEqual(
    message === undefined ? [] : [{ target: 'w1', message }],
  );
});

test('a node of several stages is named once', () => {
  const targets = [buildTarget('w1', 'done')];
  const stages = [buildStage('worker', targets), buildStage('worker', targets, { command: 1 })];
  const snapshot = buildSnapshot(buildRollout(stages), { w1: { node: NODE } });
  expect(keptCordons({ snapshot, policy: buildPolicy() })).toEqual([
    { target: 'w1', message: SINCE },
  ]);
});
