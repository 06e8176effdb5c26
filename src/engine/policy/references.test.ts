/** Tests that the controller of policies says which Secrets and namespaces of a policy cannot be used. */

import { beforeEach, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { DIALECT_NAMES, type UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { secrets } from '../../kube/resources.ts';
import { templateJobs } from '../../kube/template-jobs.ts';
import { withStatus } from './policy-controller.ts';
import { readPolicy } from './read-policy.ts';
import { hasReferences, referenceProblems, unresolvedIn } from './references.ts';

const [ONE, OTHER] = DIALECT_NAMES;

const ref = (key: string) => ({ name: 'refit-notify', key });
const url = 'https://x.example';
const template = { spec: { containers: [{ name: 'a', image: 'busybox' }] } };

const SPECS: readonly (readonly [string, UpgradePolicySpec, readonly string[]])[] = [
  [
    'the address of a receiver',
    { notify: [{ name: 'chat', type: 'Slack', events: ['Done'], secretRef: ref('slack') }] },
    ['receiver chat: Secret refit-system/refit-notify does not exist'],
  ],
  [
    'the key that signs messages',
    {
      notify: [{ name: 'hook', type: 'Webhook', events: ['Done'], url, signingKeyRef: ref('key') }],
    },
    ['receiver hook: Secret refit-system/refit-notify does not exist'],
  ],
  [
    'the credentials of a silence',
    { silences: [{ name: 'nodes', url, secretName: 'alertmanager' }] },
    ['silence nodes: Secret refit-system/alertmanager does not exist'],
  ],
  [
    'the credentials of a health check',
    { health: { http: [{ name: 'shop', url, secretName: 'shop' }] } },
    ['health check shop: Secret refit-system/shop does not exist'],
  ],
  [
    'the key of a hook',
    {
      hooks: [
        { name: 'tell', when: 'BeforeDrain', timeout: '5m', webhook: { url, secretName: 'hooks' } },
      ],
    },
    ['hook tell: Secret refit-system/hooks does not exist'],
  ],
  [
    'the namespace of a hook',
    {
      hooks: [
        { name: 'flag', when: 'AfterPlan', timeout: '5m', job: { namespace: 'nowhere', template } },
      ],
    },
    ['hook flag: no Job can be created in namespace nowhere: NotFound by the test'],
  ],
  [
    'the namespace of a health check',
    { health: { jobs: [{ name: 'flag', namespace: 'nowhere', spec: { template } }] } },
    ['health check flag: no Job can be created in namespace nowhere: NotFound by the test'],
  ],
];

let api: MemoryApi;

/** Every namespace may have Jobs. */
const EVERY = { refusalOf: () => undefined };

beforeEach(() => {
  api = new MemoryApi();
});

async function problemsOf(spec: UpgradePolicySpec): Promise<string[]> {
  const policy = readPolicy(buildUpgradePolicy('nightly', spec));
  expect(policy.problems).toEqual([]);
  const { client } = api;
  const tools = { client, namespace: 'refit-system', templates: templateJobs(client, EVERY) };
  return await referenceProblems(tools, policy, T0, new AbortController().signal);
}

function refuseJobs(code: number, reason: string): void {
  const name = 'jobs/nowhere/refit-flag-preview';
  for (const call of [`create ${name}`, 'create jobs/refit-flag-preview'])
    api.before(call, () => {
      throw refusal(code, reason);
    });
}

test.each(SPECS)('a policy says that it cannot use %s', async (_what, spec, problems) => {
  refuseJobs(404, 'NotFound');
  expect(hasReferences(readPolicy(buildUpgradePolicy('nightly', spec)))).toBe(true);
  expect(await problemsOf(spec)).toEqual(problems);
});

test('a policy says which key its Secret lacks, and is content once the key has a value', async () => {
  const spec: UpgradePolicySpec = {
    notify: [{ name: 'chat', type: 'Slack', events: ['Done'], secretRef: ref('slack') }],
  };
  const metadata = { name: 'refit-notify', namespace: 'refit-system' };
  api.put(secrets, { metadata, data: { teams: 'eA==' } });
  expect(await problemsOf(spec)).toEqual([
    'receiver chat: Secret refit-system/refit-notify has no value slack',
  ]);
  api.put(secrets, { metadata, data: { slack: 'eA==' } });
  expect(await problemsOf(spec)).toEqual([]);
});

test('a policy names the right that the controller lacks', async () => {
  api.before('get secrets/refit-notify', () => {
    throw refusal(403, 'Forbidden');
  });
  refuseJobs(403, 'Forbidden');
  const [chat] = SPECS;
  expect(await problemsOf(chat?.[1] ?? {})).toEqual([
    'receiver chat: the leader has no right to get Secret refit-system/refit-notify',
  ]);
  expect(await problemsOf(SPECS.at(-2)?.[1] ?? {})).toEqual([
    'hook flag: no Job can be created in namespace nowhere: Forbidden by the test',
  ]);
});

const TOOLS = [
  ['Karpenter', '/apis/karpenter.sh', 'the API group karpenter.sh, which Karpenter installs'],
  ['GPUOperator', '/apis/nvidia.com', 'the API group nvidia.com, which the GPU Operator installs'],
] as const;

test.each(TOOLS)(
  'a policy that coordinates with %s says if the API server serves no kind of it',
  async (tool, path, said) => {
    const spec: UpgradePolicySpec = { coordinate: [tool] };
    expect(hasReferences(readPolicy(buildUpgradePolicy('nightly', spec)))).toBe(true);
    expect(await problemsOf(spec)).toEqual([]);
    api.answerRaw(path, 404);
    expect(await problemsOf(spec)).toEqual([expect.stringContaining(said)]);
    api.answerRaw(path, 503);
    expect(await problemsOf(spec)).toEqual([]);
  },
);

test('a policy that coordinates with Kured says if no DaemonSet runs it, or if Refit may not look for it', async () => {
  const spec: UpgradePolicySpec = { coordinate: ['Kured'] };
  expect(await problemsOf(spec)).toEqual([
    expect.stringContaining('no DaemonSet of the cluster runs it'),
  ]);
  for (const call of ['list daemonsets', 'get daemonsets/kured'])
    api.before(call, () => {
      throw refusal(403, 'Forbidden');
    });
  expect(await problemsOf(spec)).toEqual([
    expect.stringMatching(/the leader has no right to read the DaemonSets .* so no node starts/),
  ]);
});

test('a policy that coordinates with the cluster autoscaler is content, because the autoscaler may run outside of the cluster', async () => {
  expect(await problemsOf({ coordinate: ['ClusterAutoscaler'] })).toEqual([]);
});

test('no dry run is sent for a Job in a namespace that the administrator has not listed', async () => {
  refuseJobs(404, 'NotFound');
  const { client } = api;
  const templates = templateJobs(client, { refusalOf: () => 'it is not listed' });
  const tools = { client, namespace: 'refit-system', templates };
  const { signal } = new AbortController();
  for (const [, spec] of SPECS.slice(-2)) {
    const policy = readPolicy(buildUpgradePolicy('nightly', spec));
    expect(await referenceProblems(tools, policy, T0, signal)).toEqual([]);
  }
});

test('the condition ResolvedRefs of a policy names the problems until they are mended', () => {
  const policy = buildUpgradePolicy('nightly', {});
  const context = { policies: [policy], dialects: [ONE], plans: [], jobs: EVERY, effects: {} };
  const bad = withStatus(policy, { ...context, references: ['receiver chat: no Secret'] }, T0);
  expect(unresolvedIn(bad)).toBe('UpgradePolicy nightly: receiver chat: no Secret');
  expect(bad.status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'ResolvedRefs', status: 'False' }),
  );
  const good = withStatus(bad, { ...context, references: [] }, T0);
  expect(unresolvedIn(good)).toBeUndefined();
  const without = withStatus(bad, context, T0);
  expect(without.status?.conditions?.map(({ type }) => type)).not.toContain('ResolvedRefs');
});

test('a controller leaves the condition about references to the controller that serves the plans', () => {
  const policy = buildUpgradePolicy('nightly', {});
  const theirs = {
    policies: [policy],
    dialects: [OTHER],
    plans: [{ dialect: OTHER, name: 'p' }],
    jobs: EVERY,
    effects: {},
  };
  const bad = withStatus(policy, { ...theirs, references: ['receiver chat: no Secret'] }, T0);
  const ours = {
    policies: [policy],
    dialects: [ONE],
    plans: [],
    references: [],
    jobs: EVERY,
    effects: {},
  };
  expect(unresolvedIn(withStatus(bad, ours, T0))).toBe(unresolvedIn(bad));
});

test('a policy says which Alertmanager of its silences does not answer', async () => {
  const matchers = [{ name: 'node', value: '{node}' }];
  const silences = [
    { name: 'up', url: 'http://up:9093', matchers },
    { name: 'down', url: 'http://down:9093', matchers },
  ];
  const policy = readPolicy(buildUpgradePolicy('nightly', { silences }));
  expect(policy.problems).toEqual([]);
  expect(hasReferences(policy)).toBe(true);
  const alertmanager = {
    reach: async ({ url }: { url: string }) => {
      await Promise.resolve();
      if (url.includes('down')) throw new Error('down:9093 gave no answer within 10 s');
    },
  };
  const tools = { client: api.client, namespace: 'n', templates: templateJobs(api.client, EVERY) };
  const { signal } = new AbortController();
  expect(await referenceProblems({ ...tools, alertmanager }, policy, T0, signal)).toEqual([
    'silence down: down:9093 gave no answer within 10 s',
  ]);
  // A process without silences sends no requests.
  expect(await referenceProblems(tools, policy, T0, signal)).toEqual([]);
});
