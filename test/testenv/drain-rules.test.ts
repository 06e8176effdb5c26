/**
 * Tests the pod rules of an UpgradePolicy: the API server checks them, and a drain with the documented rights follows
 * them.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { readPolicy } from '../../src/engine/policy/read-policy.ts';
import { type Pod, pods } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/util/clock.ts';
import { apply, kubectlAs } from './control-plane.ts';
import { beginDrain, PATIENCE, Stage } from './drain-stage.ts';
import { Workloads } from './drain-workloads.ts';

const NAMESPACE = 'drain-rules';
const POLICY = 'drain-rules';
const held = { finalizers: ['drain.example.com/hold'] };
let stage: Stage;

const policy = (drain: string): string => `
apiVersion: upgrade.refit.dev/v1alpha1
kind: UpgradePolicy
metadata: {name: ${POLICY}}
spec: {plans: [{dialect: autopilot, name: no-such-plan}], drain: ${drain}}
`;

beforeAll(async () => {
  await apply(await readFile('deploy/crds/upgrade.refit.dev_upgradepolicies.yaml', 'utf8'));
  stage = await Stage.open(NAMESPACE);
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', 'upgradepolicy', POLICY, '--ignore-not-found']);
  await stage.close();
});

async function endingOn(node: string): Promise<string[]> {
  const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
  return (await stage.podsOn(node))
    .filter(isEnding)
    .map(({ metadata }) => metadata.name)
    .toSorted();
}

test.each([
  ['{pods: [{behavior: Skip, order: 3}]}', '`order` needs the behavior Drain'],
  ['{pods: [{behavior: Evict}]}', 'Unsupported value: "Evict"'],
  ['{pods: [{order: 1}]}', 'spec.drain.pods[0].behavior: Required value'],
  ['{waitForJobs: 0s}', 'must be a time above zero and below a year'],
  ['{order: Name}', 'Unsupported value: "Name"'],
])('the API server refuses drain: %s', async (drain, words) => {
  await expect(apply(policy(drain))).rejects.toThrow(words);
});

test('a drain leaves, waits for and orders pods as the policy says', async () => {
  await apply(
    policy(`{pods: [
      {selector: {matchLabels: {app: kept}}, namespaces: [${NAMESPACE}], behavior: Skip},
      {selector: {matchLabels: {app: kept}}, behavior: Drain, order: -5},
      {selector: {matchLabels: {app: awaited}}, behavior: WaitCompleted},
      {selector: {matchLabels: {app: last}}, namespaces: [${NAMESPACE}], behavior: Drain, order: 10}],
      order: PriorityClass}`),
  );
  const read = readPolicy(await stage.admin.get(upgradePolicies, POLICY));
  expect(read.problems).toEqual([]);
  const at = new Workloads(NAMESPACE, 'drain-ruled');
  const critical = { ...held, spec: { priorityClassName: 'system-cluster-critical' } };
  const workloads = [
    at.pod('kept'),
    at.pod('awaited'),
    at.pod('last', held),
    at.pod('plain', held),
    at.pod('critical', critical),
  ];
  const node = await stage.set('drain-ruled', workloads, 5);
  const { progress, done } = beginDrain(node, stage.controller, systemClock, read.drain.options);

  await vi.waitFor(async () => expect(await endingOn(node)).toEqual(['plain']), PATIENCE);
  expect(progress.at(-1)).toMatchObject({
    left: 4,
    blockedBy: expect.stringContaining(`waiting for ${NAMESPACE}/awaited to complete`) as unknown,
  });
  await stage.release('plain');
  await stage.admin.patch(
    pods,
    'awaited',
    { status: { phase: 'Succeeded' } },
    { namespace: NAMESPACE, type: 'merge', subresource: 'status' },
  );
  await vi.waitFor(async () => expect(await endingOn(node)).toEqual(['critical']), PATIENCE);
  await stage.release('critical');
  await vi.waitFor(async () => expect(await endingOn(node)).toEqual(['last']), PATIENCE);
  await stage.release('last');
  await done;
  const left = (await stage.podsOn(node)).map(({ metadata }) => metadata.name).toSorted();
  expect(left).toEqual(['awaited', 'kept']);
});
