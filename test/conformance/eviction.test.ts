/** Tests the conformance of evictions: what a disruption budget allows and refuses, and the messages. */
import { events, get, merge, post, type Step, strategic, until, watch } from './harness/case.ts';
import { PODS } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const BUDGETS = '/apis/policy/v1/namespaces/$ns/poddisruptionbudgets';
const RUNNING = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

const pod = (name: string): object => ({
  metadata: { name, labels: { app: 'web' } },
  spec: {
    nodeName: '$id-none',
    schedulerName: 'nobody',
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: 'example.com/main' }],
  },
});

const budget = (name: string, spec: object): object => ({
  metadata: { name },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
});

const evict = (name: string, more: object = {}): Step =>
  post(`${PODS}/${name}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name },
    ...more,
  });

const running = (...names: string[]): Step[] =>
  names.flatMap((name) => [
    post(PODS, pod(name)),
    strategic(`${PODS}/${name}/status`, { status: RUNNING }),
  ]);

const settled = (member: string, value: unknown, name = 'web'): Step =>
  until(`${BUDGETS}/${name}`, `status.${member}`, value);

const testCase = conformance('eviction');

testCase('without a budget a pod is evicted', [
  ...running('a'),
  watch('w', `${PODS}?watch=true`),
  evict('a'),
  events('w', 3),
  get(`${PODS}/a`),
]);
testCase('a pod that was never scheduled is gone at once', [
  post(PODS, {
    ...pod('a'),
    spec: { ...(pod('a') as { spec: object }).spec, nodeName: undefined },
  }),
  evict('a'),
  get(`${PODS}/a`),
]);
testCase('a budget that has enough healthy pods lets one go, then refuses', [
  ...running('a', 'b'),
  post(BUDGETS, budget('web', { minAvailable: 1 })),
  settled('disruptionsAllowed', 1),
  evict('a'),
  settled('currentHealthy', 1),
  evict('b'),
  get(`${PODS}/b`),
]);
testCase('a budget that has nothing to spare refuses', [
  ...running('a'),
  post(BUDGETS, budget('web', { minAvailable: 2 })),
  settled('expectedPods', 1),
  settled('currentHealthy', 1),
  evict('a'),
  get(`${BUDGETS}/web`),
]);
testCase('a dry run asks the budget and evicts nobody', [
  ...running('a'),
  post(BUDGETS, budget('web', { minAvailable: 1 })),
  settled('currentHealthy', 1),
  evict('a', { deleteOptions: { dryRun: ['All'] } }),
  merge(`${BUDGETS}/web`, { spec: { minAvailable: 0 } }),
  settled('disruptionsAllowed', 1),
  evict('a', { deleteOptions: { dryRun: ['All'] } }),
  get(`${PODS}/a`),
]);
testCase('a pod that does not run yet is not guarded', [
  post(PODS, pod('a')),
  post(BUDGETS, budget('web', { minAvailable: 1 })),
  settled('expectedPods', 1),
  evict('a'),
]);
testCase('a pod that is not ready is guarded as long as others are missing', [
  ...running('a'),
  strategic(`${PODS}/a/status`, { status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
  post(BUDGETS, budget('web', { minAvailable: 1 })),
  settled('desiredHealthy', 1),
  evict('a'),
  merge(`${BUDGETS}/web`, { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } }),
  settled('observedGeneration', 2),
  evict('a'),
]);
testCase('two budgets for one pod are an error', [
  ...running('a'),
  post(BUDGETS, budget('web', { minAvailable: 0 })),
  post(BUDGETS, budget('also', { minAvailable: 0 })),
  settled('currentHealthy', 1),
  settled('currentHealthy', 1, 'also'),
  evict('a'),
]);
testCase('a budget for other pods does not matter', [
  ...running('a'),
  post(BUDGETS, budget('web', { minAvailable: 5, selector: { matchLabels: { app: 'db' } } })),
  settled('observedGeneration', 1),
  evict('a'),
]);
testCase('a grace period in the eviction', [
  ...running('a'),
  evict('a', { deleteOptions: { gracePeriodSeconds: 3 } }),
  get(`${PODS}/a`),
]);
testCase('evictions that are none', [
  ...running('a'),
  evict('none'),
  post(`${PODS}/a/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'b' },
  }),
  get(`${PODS}/a/eviction`),
]);
testCase('the generation of a budget counts its spec', [
  post(BUDGETS, budget('web', { minAvailable: 1 })),
  settled('observedGeneration', 1),
  merge(`${BUDGETS}/web`, { spec: { minAvailable: '50%' } }),
]);
