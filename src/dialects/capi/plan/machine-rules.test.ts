/** Proves which MachineDrainRules count for the drain of a Machine, and how they treat each pod. */
import { expect, test, vi } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPod } from '../../../../test/support/builders/pods.ts';
import { clusters, type DrainRule, drainRules, type Machine } from '../../../api/capi/machine.ts';
import { podRulesOf } from '../../../drain/pod-rules.ts';
import { judgePod, type PodVerdict } from '../../../drain/pods.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { silentLogger } from '../../../util/log.ts';
import { machineRules } from './machine-rules.ts';
import { type MachineUpdate, UPDATE_ANNOTATION, updateOn, withRequest } from './machine-update.ts';
import { withRules } from './policy-rules.ts';

const ABORT = new AbortController().signal;
const IN = { namespace: 'default' };
const MACHINE: Machine = {
  metadata: { name: 'm', ...IN, labels: { role: 'worker' } },
  spec: { clusterName: 'prod' },
};
const UPDATE: MachineUpdate = {
  uid: 'u',
  machine: 'default/m',
  version: 'v1.35.1',
  role: 'worker',
  requested: '2026-01-01T00:00:00Z',
  platform: 'linux-amd64',
  url: 'https://example.com',
};

function apiWith(...specs: DrainRule['spec'][]): MemoryApi {
  const api = new MemoryApi();
  api.put(clusters, { metadata: { name: 'prod', ...IN, labels: { region: 'eu' } } });
  // The rules are created in reverse order, so that they are not sorted by name.
  for (const [index, spec] of [...specs.entries()].toReversed())
    api.put(drainRules, { metadata: { name: `rule-${index}`, ...IN }, spec });
  return api;
}

async function rulesWith(...specs: DrainRule['spec'][]) {
  return await machineRules(apiWith(...specs).client, silentLogger)(MACHINE, ABORT);
}

const WEB = { matchLabels: { app: 'web' } };

/** Returns the verdict for a pod with the label `app: web` and these further labels. */
function verdictOf(rules: MachineUpdate['rules'], labels: Record<string, string> = {}): PodVerdict {
  const { options } = withRules(
    withRequest(buildNode('w1'), { ...UPDATE, ...(rules && { rules }) }),
    DEFAULT_POLICY,
  ).drain;
  const { ruleFor } = podRulesOf(new MemoryApi().client, options.podRules);
  return judgePod(buildPod('p', { labels: { app: 'web', ...labels } }), options, {
    isOrphaned: () => false,
    ruleFor,
  });
}

test.each<[string, DrainRule['spec']['machines'], boolean]>([
  ['of no Machine in particular', undefined, true],
  ['of its labels', [{ selector: { matchLabels: { role: 'worker' } } }], true],
  ['of other labels', [{ selector: { matchLabels: { role: 'db' } } }], false],
  ['of the labels of its Cluster', [{ clusterSelector: { matchLabels: { region: 'eu' } } }], true],
  ['of another Cluster', [{ clusterSelector: { matchLabels: { region: 'us' } } }], false],
  [
    'of its labels and of another Cluster',
    [{ selector: {}, clusterSelector: { matchLabels: { region: 'us' } } }],
    false,
  ],
  ['that names it second', [{ selector: { matchLabels: { role: 'db' } } }, { selector: {} }], true],
])('a rule %s counts: %s', async (_which, selectors, counts) => {
  const rules = await rulesWith({
    drain: { behavior: 'Skip' },
    ...(selectors && { machines: selectors }),
  });
  expect(verdictOf(rules)).toBe(counts ? 'left' : 'evict');
});

test.each<[string, DrainRule['spec'][], Record<string, string>, PodVerdict]>([
  ['without a rule', [], {}, 'evict'],
  [
    'with a rule for others',
    [{ drain: { behavior: 'Skip' }, pods: [{ selector: { matchLabels: { app: 'db' } } }] }],
    {},
    'evict',
  ],
  ['that stays', [{ drain: { behavior: 'Skip' }, pods: [{ selector: WEB }] }], {}, 'left'],
  ['that ends by itself', [{ drain: { behavior: 'WaitCompleted' } }], {}, 'awaited'],
  [
    'whose first rule by name evicts it',
    [{ drain: { behavior: 'Drain' } }, { drain: { behavior: 'Skip' } }],
    {},
    'evict',
  ],
  ['with a label', [], { 'cluster.x-k8s.io/drain': 'Skip' }, 'left'],
  ['with the other label', [], { 'cluster.x-k8s.io/drain': 'wait-completed' }, 'awaited'],
  [
    'whose label is before its rule',
    [{ drain: { behavior: 'Drain' } }],
    { 'cluster.x-k8s.io/drain': 'skip' },
    'left',
  ],
])('a pod %s', async (_which, specs, labels, verdict) => {
  expect(verdictOf(await rulesWith(...specs), labels)).toBe(verdict);
});

test('the order of a rule is that of its pods', async () => {
  const { podRules } = await rulesWith({
    drain: { behavior: 'Drain', order: 7 },
    pods: [{ selector: WEB }],
  });
  expect(podRules).toEqual([{ pods: [{ selector: WEB }], action: 'evict', turn: 7 }]);
});

test("the labels and rules of Cluster API come before the policy's rules", () => {
  const rule = (action: 'leave' | 'wait') => ({ pods: [{ selector: WEB }], action, turn: 0 });
  const { drain } = DEFAULT_POLICY;
  const options = { ...drain.options, podRules: [rule('wait')] };
  const policy = { ...DEFAULT_POLICY, drain: { ...drain, options } };
  const rules = { drainSeconds: 0, podRules: [rule('leave')] };
  const node = withRequest(buildNode('w1'), { ...UPDATE, rules });
  expect(withRules(node, policy).drain.options.podRules?.slice(-2)).toEqual([
    rule('leave'),
    rule('wait'),
  ]);
});

test('a pod of which a later Cluster API says something else is not evicted', async () => {
  const { podRules } = await rulesWith({
    drain: { behavior: 'Migrate' },
    pods: [{ selector: WEB }],
  });
  expect(podRules).toEqual([{ pods: [{ selector: WEB }], action: 'wait', turn: 0 }]);
});

test('rules are listed once for all Machines of one reconcile, and again for the next', async () => {
  const { client } = apiWith();
  const listAll = vi.spyOn(client, 'listAll');
  const rulesOf = machineRules(client, silentLogger);
  await Promise.all([rulesOf(MACHINE, ABORT), rulesOf(MACHINE, ABORT)]);
  expect(listAll).toHaveBeenCalledTimes(1);
  await rulesOf(MACHINE, new AbortController().signal);
  expect(listAll).toHaveBeenCalledTimes(2);
});

test('more rules than a Node can hold: it waits, and says why', async () => {
  const rule: DrainRule['spec'] = { drain: { behavior: 'Drain' }, pods: [{ selector: WEB }] };
  const rules = await rulesWith(...Array.from({ length: 1_000 }, () => rule));
  expect(rules).toEqual({
    drainSeconds: 0,
    paused: expect.stringMatching(/^namespace default, whose .* 65536 at most,$/),
  });
});

test.each([
  ['deeper than a stack', '['.repeat(20_000) + ']'.repeat(20_000)],
  ['without pods', '[{"action":"evict","turn":0}]'],
  ['without a selector', '[{"pods":[null],"action":"evict","turn":0}]'],
])('a Node with rules %s has no request', (_what, podRules) => {
  const node = withRequest(buildNode('w1'), { ...UPDATE, rules: { drainSeconds: 7 } });
  const { [UPDATE_ANNOTATION]: text = '' } = node.metadata.annotations ?? {};
  const odd = text.replace('"drainSeconds":7', `"drainSeconds":7,"podRules":${podRules}`);
  const annotations = { [UPDATE_ANNOTATION]: odd };
  expect(updateOn(node)).toBeDefined();
  expect(updateOn(buildNode('w1', { annotations }))).toBeUndefined();
});

test('without the kinds or the rights nothing counts, which is said once', async () => {
  const log = { info: vi.fn() };
  const rulesOf = machineRules(new MemoryApi().client, log);
  expect([await rulesOf(MACHINE, ABORT), await rulesOf(MACHINE, ABORT)]).toEqual([
    { drainSeconds: 0 },
    { drainSeconds: 0 },
  ]);
  expect(log.info).toHaveBeenCalledOnce();
});
