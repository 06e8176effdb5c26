/** Tests that the requests of a policy are decoded as they were encoded, and that an invalid text requests nothing. */
import { expect, test } from 'vitest';
import { agentPolicyFor, decodeAgentPolicy, encodeAgentPolicy } from './annotations.ts';
import { AGENT_POLICY_ANNOTATION, ROLLOUT_ANNOTATION } from './names.ts';

test.each([
  {},
  { soakMs: 5000 },
  { soakMs: 0, restartTimeoutMs: 90_000, readyTimeoutMs: 60_000, cordoning: 'leader' },
  { downloadTimeoutMs: 60_000, requireHttps: true, diskReserveBytes: 5 },
  { drain: { enabled: false, uncordon: 'always' } },
  {
    drain: {
      localData: 'refuse',
      unmanagedPods: 'refuse',
      gracePeriodSeconds: 0,
      timeoutMs: 60_000,
    },
  },
  { cordonFor: 'plan-uid/2026-11-20T08:00:00Z', foundCordoned: true },
] as const)('%j comes back as it was written', (policy) => {
  expect(decodeAgentPolicy(encodeAgentPolicy(policy))).toEqual(policy);
});

test.each([
  ['no annotation', undefined],
  ['no JSON', 'soak'],
  ['no object', '7'],
  [
    'members of other types',
    '{"soakMs":"5s","restartTimeoutMs":-1,"cordoning":"me","cordonFor":7,"requireHttps":"yes","diskReserveBytes":-1}',
  ],
  ['a drain that is none', '{"drain":"none"}'],
])('%s asks nothing', (_, text) => {
  expect(
    decodeAgentPolicy(text === undefined ? undefined : { [AGENT_POLICY_ANNOTATION]: text }),
  ).toEqual({});
});

test('members of a drain that are not what they should be are as good as absent', () => {
  const text = JSON.stringify({
    drain: {
      enabled: 0,
      localData: 'Refuse',
      gracePeriodSeconds: -1,
      timeoutMs: '1h',
      uncordon: true,
      more: 1,
    },
  });
  expect(decodeAgentPolicy({ [AGENT_POLICY_ANNOTATION]: text })).toEqual({ drain: {} });
});

test('a policy that asks nothing is not written', () => {
  expect(encodeAgentPolicy({})).toEqual({});
});

test.each([
  ['uid/2026-11-20T08:00:00Z', { soakMs: 1 }],
  ['uid/12026-11-20T08:00:00Z', {}],
  [undefined, {}],
])('beside the rollout %s it counts for its own signal only', (rollout, policy) => {
  const annotations = {
    ...encodeAgentPolicy({ soakMs: 1 }),
    ...(rollout && { [ROLLOUT_ANNOTATION]: rollout }),
  };
  expect(agentPolicyFor(annotations, '2026-11-20T08:00:00Z')).toEqual(policy);
  expect(agentPolicyFor(undefined, '2026-11-20T08:00:00Z')).toEqual({});
});
