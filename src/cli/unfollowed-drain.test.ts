/** Shows which drain fields are reported as ignored if a tool other than the leader may drain the nodes. */

import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { MODULES } from '../dialects/modules.ts';
import { unfollowedDrain } from './unfollowed-drain.ts';

const K0S =
  'ignored by a k0s node that drains itself. A k0s node drains itself in two cases: the leader is a k0s before 1.35, or the agent has no right to label the Lease of the node';
const RANCHER =
  'ignored by a Job of a Rancher Plan that drains its node. These Jobs drain their nodes by default; the leader drains instead if the controller runs with SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false';
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
    [`spec.drain.waitForJobs, spec.drain.volumes: ${RANCHER}`],
  ],
  [
    'a wait for budgets, which holds every node but one that a Job drains',
    { drain: { zeroDisruptionBudgets: 'Wait' } },
    [`spec.drain.zeroDisruptionBudgets: ${RANCHER}`],
  ],
  ['no wait for budgets', { drain: { zeroDisruptionBudgets: 'Try' } }, []],
  [
    'dialects whose leader always drains',
    { plans: [{ dialect: 'kubeadm' }, { dialect: 'capi' }], drain: { pods } },
    [],
  ],
])(
  'the warnings about fields of the drain that plans do not follow: %s',
  (_what, spec, warnings) => {
    expect(unfollowedDrain(spec, MODULES)).toEqual(warnings);
  },
);
