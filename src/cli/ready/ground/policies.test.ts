/** Tests what is said about UpgradePolicies before an upgrade. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../test/support/clock/times.ts';
import { readyContext } from '../../../../test/support/ready/world.ts';
import type { UpgradePolicy, UpgradePolicySpec } from '../../../api/refit/upgrade-policy.ts';
import { leases } from '../../../kube/resources.ts';
import { answer, type ReadResult, unknown } from '../../../ready/asking.ts';
import { microTime } from '../../../util/clock.ts';
import { policyGround } from './policies.ts';

const HOOK: UpgradePolicySpec = {
  hooks: [
    {
      name: 'tests',
      when: 'BeforeDrain',
      timeout: '1m',
      webhook: { url: 'https://x.example.com', secretName: 's' },
    },
  ],
};

const RECEIVER: UpgradePolicySpec = {
  notify: [{ name: 'chat', type: 'Slack', events: ['Failed'], secretRef: { name: 's', key: 'k' } }],
};

function policy(spec: UpgradePolicySpec, ...conditions: object[]): UpgradePolicy {
  return {
    metadata: { name: 'careful', generation: 2 },
    spec,
    ...(conditions.length > 0 && { status: { conditions } }),
  } as UpgradePolicy;
}

function resolved(status: string, message = '', observedGeneration = 2): object {
  return { type: 'ResolvedRefs', status, message, observedGeneration };
}

async function ask(policies: ReadResult<readonly UpgradePolicy[]>, api = new MemoryApi()) {
  const { signal } = new AbortController();
  const parts = { policies, client: api.client, clock: new FakeClock(T0), abort: signal };
  return await policyGround(parts)(readyContext());
}

test.each<[string, UpgradePolicy, string | undefined, string]>([
  ['without a reference', policy({}), undefined, ''],
  ['whose references can be used', policy(RECEIVER, resolved('True')), undefined, ''],
  [
    'whose receiver lacks its Secret',
    policy(RECEIVER, resolved('False', 'receiver chat: Secret refit-system/s is missing')),
    'warning',
    'its controller cannot use what it refers to: receiver chat: Secret refit-system/s is missing',
  ],
  [
    'whose hook cannot run',
    policy(HOOK, resolved('False', 'hook tests: no right')),
    'blocker',
    'its controller cannot use what it refers to: hook tests: no right',
  ],
  [
    'at whose generation no controller has looked',
    policy(RECEIVER, resolved('True', '', 1)),
    'unknown',
    'no controller has looked at this generation',
  ],
  [
    'that is not valid',
    policy({ concurrency: 'many' } as unknown as UpgradePolicySpec),
    'blocker',
    'UpgradePolicy careful: ',
  ],
  [
    'with the same entry as another one',
    policy({}, { type: 'Conflicted', status: 'True', message: 'ignored for k0s: another has it' }),
    'warning',
    'a part of it is ignored for k0s: another has it',
  ],
])('a policy %s is judged', async (_, given, state, message) => {
  const found = await ask(answer([given]));
  expect(found.map((each) => each.state)).toEqual(state === undefined ? [] : [state]);
  expect(found.map((each) => `${each.object ?? ''} ${each.message}`).join()).toContain(message);
});

test('a lock of another tool is a warning, because the upgrade would wait for it', async () => {
  const api = new MemoryApi();
  api.put(leases, {
    metadata: { namespace: 'refit-system', name: 'disruption' },
    spec: {
      holderIdentity: 'patcher',
      leaseDurationSeconds: 3600,
      renewTime: microTime(T0),
      acquireTime: microTime(T0),
    },
  });
  const found = await ask(
    answer([policy({ coordinate: ['DisruptionLease'] }, resolved('True'))]),
    api,
  );
  expect(found).toEqual([
    expect.objectContaining({
      state: 'warning',
      message: expect.stringContaining(
        'Lease refit-system/disruption is held by patcher',
      ) as unknown,
    }),
  ]);
});

test('policies that cannot be read are left to the check of health', async () => {
  expect(await ask(unknown('you may not read upgradepolicies'))).toEqual([]);
});
