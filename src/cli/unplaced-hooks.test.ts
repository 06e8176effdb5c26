/** Tests which policies cause a warning because their hooks cannot run between the drain and the restart. */

import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { MODULES } from '../dialects/modules.ts';
import { unplacedHooks } from './unplaced-hooks.ts';

type HookSpec = NonNullable<UpgradePolicySpec['hooks']>[number];
const webhook = { url: 'https://hooks.example', secretName: 's' };

function hook(when: HookSpec['when'], more: Partial<HookSpec> = {}): HookSpec {
  return { name: 'detach', when, timeout: '1m', webhook, ...more };
}

const K0S = (effect: string): string =>
  `spec.hooks (detach): no hook runs between the drain and the restart on a k0s node that drains itself, so the node ${effect}. A k0s node drains itself in two cases: the leader is a k0s before 1.35, or the agent has no right to label the Lease of the node`;
const RANCHER = (effect: string): string =>
  `spec.hooks (detach): no hook runs between the drain and the restart on a node that the Job of a Rancher Plan drains, so the node ${effect}. These Jobs drain their nodes by default; the leader drains instead if the controller runs with SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false`;

test.each<[string, UpgradePolicySpec, string[]]>([
  ['no hook', {}, []],
  ['hooks at other moments', { hooks: [hook('BeforeDrain'), hook('AfterVerified')] }, []],
  [
    'every dialect',
    { hooks: [hook('AfterDrain')] },
    [K0S('does not start'), RANCHER('does not start')],
  ],
  [
    'one dialect, and a failure is ignored',
    { plans: [{ dialect: 'cattle' }], hooks: [hook('BeforeRestart', { onFailure: 'Ignore' })] },
    [RANCHER('goes on without it')],
  ],
  [
    'a dialect whose leader drains',
    { plans: [{ dialect: 'kubeadm' }], hooks: [hook('AfterDrain')] },
    [],
  ],
])('the warnings about hooks at a moment that plans do not have: %s', (_what, spec, warnings) => {
  expect(unplacedHooks(spec, MODULES)).toEqual(warnings);
});
