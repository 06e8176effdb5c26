/** Proves how the request and the record of a plan are read if this release, an earlier release, or a user wrote them. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { stageWith } from '../../../../test/support/kubeadm/survey.ts';
import { because } from '../../../engine/model/reasons.ts';
import { reasonAbout } from '../../../engine/reasons/about-target.ts';
import { kubeadmView } from './kubeadm-dialect.ts';
import { newPlan, readRecord, requestOf, withRecord } from './plan-object.ts';

test.each([undefined, '', '{', '{}', '{"version":1}'])(
  'a plan with a request that nobody can read has none: %j',
  (text) => {
    expect(
      requestOf({
        metadata: { name: 'refit-kubeadm' },
        ...(text === undefined ? {} : { data: { request: text } }),
      }),
    ).toBeUndefined();
  },
);

test('one from before there were renewals of certificates has none', () => {
  const earlier = {
    version: 'v1.36.3',
    concurrent: 1,
    leader: ['cp1'],
    followers: [],
    kubelets: [],
    workers: [],
  };
  const plan = { metadata: { name: 'refit-kubeadm' }, data: { request: JSON.stringify(earlier) } };
  expect(requestOf(plan)).toEqual({ ...earlier, certificates: [] });
});

const wanted = {
  version: 'v1.36.3',
  concurrent: 1,
  certificates: [],
  leader: ['cp1'],
  followers: [],
  kubelets: [],
};
const stages = (...given: readonly unknown[]) =>
  JSON.stringify({ phase: 'running', blocked: false, stages: given });

test.each([
  ['a stage that is nothing', stages(null), 'stages[0]: is empty, expected an object'],
  [
    'a stage without targets',
    stages({ ...stageWith('a', {}), targets: null }),
    'stages[0].targets: is empty, expected a list',
  ],
  [
    'a target that is nothing',
    stages({ ...stageWith('a', {}), targets: [null] }),
    'stages[0].targets[0]: is empty',
  ],
  [
    'a state that there is not',
    stages(stageWith('a', { cp1: 'finished' })),
    'stages[0].targets[0].state: is the text "finished"',
  ],
  [
    'a reason without a sentence',
    JSON.stringify({ phase: 'failed', blocked: false, reason: { code: 'Stopped' }, stages: [] }),
    'reason.message: is missing',
  ],
  ['no JSON', '{', 'it: is the text "{", expected an object'],
])(
  'a record that a person has edited, %s: nothing is done, and one sentence says why',
  (_name, rollout, found) => {
    const plan = newPlan({ ...wanted, workers: [] }, '');
    const edited = { ...plan, data: { ...plan.data, rollout } };
    const said = `ConfigMap kube-system/refit-kubeadm: data.rollout: ${found}`;
    expect(readRecord(edited).unread).toContain(said);
    const { unread } = kubeadmView.resolve(edited, buildWorld([], []), 0);
    expect(unread).toMatchObject({ code: 'RecordUnread', message: expect.stringContaining(said) });
  },
);

test('a record that Refit wrote is read, with what a later release added', () => {
  const plan = newPlan({ ...wanted, workers: [] }, '');
  const recorded = {
    ...plan,
    data: { ...plan.data, rollout: stages({ ...stageWith('a', { cp1: 'done' }), more: 1 }) },
  };
  expect(readRecord(recorded).unread).toBeUndefined();
  expect(kubeadmView.resolve(recorded, buildWorld([], []), 0).stages).toMatchObject([
    { id: 'a', more: 1 },
  ]);
});

test('a record has only the code and the sentence of a reason, because the rest is read again', () => {
  const details = { policy: 'nightly', hook: 'errors' };
  const reason = reasonAbout('cp1', because('HookFailed', 'cp1: the hook failed', details));
  const recorded = withRecord(
    newPlan({ ...wanted, workers: [] }, ''),
    buildRollout([], { phase: 'failed', reason }),
  );
  expect(JSON.parse(recorded.data?.['rollout'] ?? '')).toEqual({
    phase: 'failed',
    blocked: false,
    reason: { code: 'HookFailed', message: 'cp1: the hook failed' },
    stages: [],
  });
});
