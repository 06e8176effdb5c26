/** Operations that change the policy of all plans, which work in every dialect. */
import { upgradePolicies } from '../../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../../src/api/refit/upgrade-policy.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import { CHECKED, policyWith, setHealth } from '../../scenes/k0s-scene.ts';
import type { Operation, Scenery } from './lab.ts';

const POLICY = 'careful';

async function setPolicy({ stage }: Scenery, spec: UpgradePolicySpec): Promise<void> {
  const { client } = stage;
  const old = await ifFound(client.get(upgradePolicies, POLICY));
  if (old) await client.delete(upgradePolicies, POLICY);
  await stage.create(upgradePolicies, policyWith(spec));
}

/** Returns the operation that replaces the policy. */
export function policy(name: string, spec: UpgradePolicySpec): Operation {
  return { name: `the policy is: ${name}`, act: async (scenery) => await setPolicy(scenery, spec) };
}

const template = { spec: { containers: [{ name: 'a', image: 'registry.example.com/a' }] } };
const MISSING_NAMESPACE: UpgradePolicySpec = {
  hooks: [
    { name: 'backup', when: 'BeforeDrain', timeout: '5m', job: { namespace: 'missing', template } },
  ],
};

/** Changes of the policy. `first` is the node of the first wave. */
export function policyOperations(first: string): Operation[] {
  return [
    policy('paused', { paused: true }),
    policy('nothing special', {}),
    policy('one failure is allowed', { failureBudget: 1 }),
    policy('a failed node is tried again', { retry: { attempts: 2, backoff: '30s' } }),
    policy('only on Saturdays', {
      windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }],
    }),
    policy('a check', CHECKED),
    policy('waves with an approval', {
      waves: [
        { selector: { matchLabels: { 'kubernetes.io/hostname': first } } },
        { approval: 'Manual' },
      ],
    }),
    policy('a hook that cannot be created', MISSING_NAMESPACE),
    { name: 'the check fails', act: async ({ stage }) => await setHealth(stage, 'bad') },
    { name: 'the check passes', act: async ({ stage }) => await setHealth(stage, 'good') },
  ];
}
