/** Proves that each refusal of a Plan says what to change, or which setting allows the Plan. */
import { expect, test } from 'vitest';
import {
  buildPlan,
  buildUpdate,
  listed,
  selected,
} from '../../../../test/support/builders/plans.ts';
import type { K0sUpdate, Plan, TargetSpec } from '../../../api/autopilot/plan.ts';
import { remedyOf } from '../../../engine/model/reasons.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { cgroupV1Refusal } from '../../../versions/k0s-rules.ts';
import { judgePlan } from '../../../versions/plan-rules.ts';
import { problemsOf } from './problems.ts';
import { preconditions } from './removed-apis.ts';

const EXAMPLE = buildPlan();
const update = (more: Partial<K0sUpdate>): Plan =>
  buildPlan({ commands: [{ k0supdate: buildUpdate(more) }] });
const workers = (targets: TargetSpec): Plan => update({ targets: { workers: targets } });
const platform = (url: string, sha256 = ''): Plan =>
  update({ platforms: { 'linux-amd64': { url, sha256 } } });
const bundle = (version: string): Plan =>
  buildPlan({ commands: [{ airgapupdate: { version, platforms: {}, workers: listed('w1') } }] });

/** The remedy follows the last semicolon. */
const FIX = /; (use|add|restore|make|name|list) [^;]+$/;

test.each<[string, Plan]>([
  ['another name', { ...EXAMPLE, metadata: { ...EXAMPLE.metadata, name: 'other' } }],
  ['an empty id', buildPlan({ id: '' })],
  ['a long id', buildPlan({ id: 'x'.repeat(10_001) })],
  ['no command', buildPlan({ commands: [] })],
  ['a command without an update', buildPlan({ commands: [{}] })],
  [
    'too many commands',
    buildPlan({ commands: Array.from({ length: 101 }, () => ({ k0supdate: buildUpdate() })) }),
  ],
  [
    'fewer commands than at the start',
    {
      ...EXAMPLE,
      status: { state: 'Schedulable', commands: [{ id: 0 }, { id: 1 }] } as NonNullable<
        Plan['status']
      >,
    },
  ],
  [
    'names that fill the object',
    workers(listed(...Array.from({ length: 8_000 }, (_, index) => `${index}`.padStart(250, 'n')))),
  ],
  ['a text that is not a version', update({ version: 'latest' })],
  ['a version that no node reports', update({ version: 'v1.36.3-k0s.0' })],
  ['an image bundle without a version', bundle('')],
  ['an image bundle without platforms', bundle('v1.36.3+k0s.0')],
  ['no platform', update({ platforms: {} })],
  ['a URL that is none', platform('ftp://example.com/k0s')],
  ['a hash that is none', platform('https://example.com/k0s', 'abc')],
  ['no slot', workers({ ...listed('w1'), limits: { concurrent: 0 } })],
  ['an empty name', workers(listed(''))],
  ['a long name', workers(listed('n'.repeat(254)))],
  ['a name twice', workers(listed('w1', 'w1'))],
  ['a label selector that is none', workers(selected('pool in'))],
  ['a long label selector', workers(selected(`pool=${'b'.repeat(2 ** 16)}`))],
  [
    'a field selector that is none',
    workers({ discovery: { selector: { fields: 'spec.taints=x' } } }),
  ],
])('an invalid Plan: %s', (_name, plan) => {
  const found = problemsOf(plan).map(({ message }) => message);
  expect(found).not.toEqual([]);
  for (const message of found) expect(message).toMatch(FIX);
});

test.each([
  ['SkippedMinor', 'v1.34.1+k0s.0', 'v1.36.3+k0s.0', 'v1.36.3+k0s.0'],
  ['Downgrade', 'v1.36.3+k0s.0', 'v1.36.1+k0s.0', 'v1.36.3+k0s.0'],
  ['KubeletAhead', 'v1.36.3+k0s.0', 'v1.37.1+k0s.0', 'v1.36.3+k0s.0'],
] as const)('a broken rule about versions: %s', (rule, current, version, server) => {
  const target = { name: 'w1', current };
  const stage = { role: 'worker', version, forced: false, targets: [target] } as const;
  const { problems } = judgePlan([stage], [{ name: 'c1', version: server }], new Set());
  const lifts = `versions.allow: [${rule}] of an UpgradePolicy allows it`;
  const message = expect.stringContaining(lifts) as unknown;
  expect(problems).toEqual([{ code: rule, message, details: { versions: [version] } }]);
  expect(remedyOf(rule)).toContain(`versions.allow: [${rule}]`);
});

test('an API server that never answers: the remedy names a controller that has left', () => {
  expect(remedyOf('ControlPlaneNotReady')).toContain(
    'if that controller has left the cluster for good, delete its object',
  );
});

test('a host with cgroup v1', () => {
  expect(cgroupV1Refusal('v1.36.3+k0s.0')).toMatch(
    /boot it with cgroup v2, or set failCgroupV1: false .*--allow-cgroup-v1/,
  );
});

test('objects of a removed kind: the sentence is that of k0s, so the remedy follows it in the status', async () => {
  const client = {
    raw: async () =>
      await Promise.resolve({
        status: 200,
        body: JSON.stringify({ resources: [{ name: 'removedcrds', kind: 'RemovedCRD' }] }),
      }),
    listAll: async () => await Promise.resolve({ items: [{ metadata: { name: 'left' } }] }),
  } as unknown as KubeClient;
  const [reason] = await preconditions(client, update({ version: 'v99.99.99+k0s.0' }));
  expect(reason?.message).toMatch(/^removedcrds\.\S+ v1beta1 has been removed in Kubernetes /);
  expect(reason && remedyOf(reason.code)).toMatch(/^Migrate the objects .* or delete them/);
});
