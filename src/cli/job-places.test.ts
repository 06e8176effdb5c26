/** Tests what a preview says about the namespaces in which a policy from a file wants Jobs. */
import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { lookAtJobPlaces } from './job-places.ts';

const template = { spec: { containers: [{ name: 'a', image: 'busybox' }] } };
const SPEC: UpgradePolicySpec = {
  hooks: [
    { name: 'flag', when: 'BeforeDrain', timeout: '5m', job: { namespace: 'nowhere', template } },
    { name: 'mark', when: 'AfterPlan', timeout: '5m', job: { namespace: 'refit-hooks', template } },
  ],
  health: { jobs: [{ name: 'smoke', namespace: 'nowhere', timeout: '5m', spec: { template } }] },
};
const RIGHTS = expect.stringMatching(/^whether the controller has the right to create the Jobs/);

test('a missing namespace is named for each hook and each health check that needs it', async () => {
  const has = async (name: string) => await Promise.resolve(name === 'refit-hooks');
  expect(await lookAtJobPlaces(SPEC, has)).toEqual({
    warnings: [
      'spec.hooks[0].job.namespace: the cluster has no namespace nowhere, so the controller cannot create the Job. Create the namespace before you apply the plan',
      'spec.health.jobs[0].namespace: the cluster has no namespace nowhere, so the controller cannot create the Job. Create the namespace before you apply the plan',
    ],
    unseen: [RIGHTS],
  });
});

test('a user who may not read namespaces learns that the question has no answer', async () => {
  const has = async () => await Promise.reject(new Error('forbidden'));
  expect(await lookAtJobPlaces(SPEC, has)).toEqual({
    warnings: [],
    unseen: ['whether the cluster has the namespaces nowhere, refit-hooks', RIGHTS],
  });
});

test('a policy without Jobs needs no namespace', async () => {
  expect(await lookAtJobPlaces({}, async () => await Promise.resolve(false))).toEqual({
    warnings: [],
    unseen: [],
  });
});
