/** Tests that what a policy asks comes back as it was written, and that nonsense asks nothing. */
import { expect, test } from 'vitest';
import { decodeAgentPolicy, encodeAgentPolicy } from './agent-policy.ts';
import { AGENT_POLICY_ANNOTATION } from './names.ts';

test.each([
  {},
  { soakMs: 5000 },
  { soakMs: 0, restartTimeoutMs: 90_000, readyTimeoutMs: 60_000, cordoning: 'leader' },
  { downloadTimeoutMs: 60_000, requireHttps: true },
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
    '{"soakMs":"5s","restartTimeoutMs":-1,"cordoning":"me","cordonFor":7,"requireHttps":"yes"}',
  ],
])('%s asks nothing', (_, text) => {
  expect(decodeAgentPolicy(text === undefined ? undefined : { [AGENT_POLICY_ANNOTATION]: text })).toEqual({});
});
