/** Shows which fields of a drain are named where somebody else than the leader may drain. */
import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { unfollowedDrain } from './unfollowed-drain.ts';

const K0S =
  'a node of k0s that drains itself does not follow it; it does so under a leader of k0s before 1.35, or if its agent may not mark its Lease';
const RANCHER =
  'the Job of a Rancher Plan that drains its node does not follow it; it does so unless the controller has SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false';
const pods = [{ behavior: 'Skip' as const }];

test.each<[string, UpgradePolicySpec, string[]]>([
  ['no drain', {}, []],
  ['what all follow', { drain: { force: false, gracePeriodSeconds: 5 } }, []],
  ['nothing is switched on', { drain: { pods: [], loadBalancers: {}, volumes: {} } }, []],
  ['no drain at all', { drain: { enabled: false, pods } }, []],
  [
    'every dialect',
    { drain: { pods } },
    [`spec.drain.pods: ${K0S}`, `spec.drain.pods: ${RANCHER}`],
  ],
  [
    'one dialect',
    { plans: [{ dialect: 'autopilot' }], drain: { order: 'PriorityClass' } },
    [`spec.drain.order: ${K0S}`],
  ],
  [
    'the label, which an agent sets as well',
    { drain: { loadBalancers: { exclude: true } } },
    [`spec.drain.loadBalancers: ${RANCHER}`],
  ],
  [
    'several fields',
    {
      plans: [{ dialect: 'cattle', name: 'os' }],
      drain: { waitForJobs: '5m', volumes: { waitForDetach: true } },
    },
    [`spec.drain.waitForJobs, spec.drain.volumes: ${RANCHER.replace('follow it', 'follow them')}`],
  ],
  [
    'dialects whose leader always drains',
    { plans: [{ dialect: 'kubeadm' }, { dialect: 'capi' }], drain: { pods } },
    [],
  ],
])('%s', (_what, spec, warnings) => {
  expect(unfollowedDrain(spec)).toEqual(warnings);
});
