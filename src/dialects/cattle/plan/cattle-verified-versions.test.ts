/**
 * Tests that a node of a Plan which installs K3s or RKE2 is done only when its kubelet reports the version, and that it
 * fails if the kubelet does not report the version in time.
 */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../../test/support/builders/cattle-scenes.ts';
import { MINUTE } from '../../../../test/support/clock/times.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { annotated, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { awaitedBy } from './awaited-plan.ts';
import { conditionOf } from './conditions.ts';

const OLD = 'v1.36.3+k3s1';
const NEW = 'v1.36.4+k3s1';
const LABEL = 'plan.upgrade.cattle.io/p';
type Scene = ReturnType<typeof buildCattleScene>;
type Options = Parameters<typeof buildCattleScene>[2];

function report({ api }: Scene, name: string, kubeletVersion: string): void {
  api.change(nodes, name, (node: Node) => ({
    ...node,
    status: { ...node.status, nodeInfo: { kubeletVersion } },
  }));
}

/** Returns a scene whose nodes run the old version, after the Job of the first node is complete. */
async function afterJob(spec: Partial<CattleSpec> = {}, options: Options = {}) {
  const plan = buildCattlePlan('p', {
    version: NEW,
    cordon: true,
    ...spec,
    upgrade: { image: 'rancher/k3s-upgrade', ...spec.upgrade },
  });
  const scene = buildCattleScene([plan], ['a', 'b'], options);
  for (const name of ['a', 'b']) report(scene, name, OLD);
  await scene.look(4);
  const [first = ''] = scene.atWork();
  // In this scene the Job cordons its node, as kubectl does in a real Job.
  scene.api.change(nodes, first, (node: Node) => ({ ...node, spec: { unschedulable: true } }));
  scene.complete(first);
  await scene.look(5);
  const node = () => scene.api.read(nodes, first);
  return {
    ...scene,
    scene,
    first,
    node,
    label: () => node().metadata.labels?.[LABEL],
    complete: () => conditionOf(scene.api.read(cattlePlans, 'p'), 'Complete'),
    jobOf: () =>
      scene.made().filter(({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'] === first),
  };
}

test('a node whose Job succeeded is uncordoned at once, and holds its slot without a hash label until its kubelet reports the version', async () => {
  const run = await afterJob({ postCompleteLabels: { done: 'yes' } });
  const { first, node, scene } = run;
  expect(node().spec?.unschedulable).not.toBe(true);
  expect([run.label(), node().metadata.labels?.['done']]).toEqual([undefined, undefined]);
  expect(node().metadata.annotations).not.toHaveProperty([
    'system-upgrade.upgraded.refit.upgrade.cattle.io/p',
  ]);
  expect(scene.api.read(cattlePlans, 'p').status?.applying).toEqual([first]);
  expect([run.atWork(), run.complete()?.status]).toEqual([[], 'False']);
  report(scene, first, NEW);
  await scene.look(4);
  expect([run.label(), node().metadata.labels?.['done']]).toEqual([expect.any(String), 'yes']);
  const record =
    node().metadata.annotations?.['system-upgrade.upgraded.refit.upgrade.cattle.io/p'] ?? '';
  expect(JSON.parse(record)).toMatchObject({ version: 'v1.36.4-k3s1', from: OLD });
  expect(run.atWork()).toHaveLength(1);
});

test('a Plan that waits in prepare for the Plan of the servers goes on waiting while a kubelet keeps its version', async () => {
  const { scene } = await afterJob();
  await scene.look(3, MINUTE);
  const prepare = { image: 'rancher/k3s-upgrade', args: ['prepare', 'p'] };
  const world = {
    ...scene.api.view(jobs),
    get: (_: unknown, name: string) => scene.api.read(cattlePlans, name),
  };
  expect(awaitedBy(buildCattlePlan('agents', { prepare }), world as never)?.plan).toBe(
    'Plan system-upgrade/p',
  );
});

const IMAGES: readonly (readonly [string, Partial<CattleSpec>, Options, boolean])[] = [
  ['a script', { upgrade: { image: 'example.com/script' } }, {}, true],
  [
    'an image whose tag is no version',
    { upgrade: { image: 'rancher/k3s-upgrade:latest' } },
    {},
    true,
  ],
  ['K3s without the checks', {}, { checksVersions: false }, true],
  ['K3s with versions.verify: None', {}, { policyOf: () => ({ trustsSuccess: true }) }, true],
  [
    'a tag that the kubelet already reports',
    { upgrade: { image: 'rancher/k3s-upgrade:v1.36.3-k3s1' } },
    {},
    true,
  ],
  ['a release candidate of the version of the kubelet', { version: 'v1.36.3-rc1+k3s1' }, {}, true],
  ['a version without a build', { version: 'v1.36.3' }, {}, true],
  ['K3s', {}, {}, false],
  [
    'RKE2 from a mirror',
    { upgrade: { image: 'example.com/a/rke2-upgrade' }, version: 'v1.36.4+rke2r1' },
    {},
    false,
  ],
];

const WINDOWS: readonly (readonly [string, string, boolean])[] = [
  ['reports the version without its build', 'v1.36.4', true],
  ['reports the earlier version without its build', 'v1.36.3', false],
  ['reports the version with another build', 'v1.36.4+rke2r2', false],
];

test.each(WINDOWS)(
  'a Windows node of a Plan for v1.36.4+rke2r1 whose kubelet %s is treated by the version alone: %s',
  async (_what, kubelet, isDone) => {
    const image = 'example.com/rke2-upgrade-windows';
    const run = await afterJob(
      { upgrade: { image }, version: 'v1.36.4+rke2r1', nodeSelector: {} },
      { job: { kubectlImageWindows: 'k' }, installers: [image] },
    );
    run.api.change(nodes, run.first, ({ metadata, ...node }: Node) => ({
      ...node,
      metadata: { ...metadata, labels: { ...metadata.labels, 'kubernetes.io/os': 'windows' } },
    }));
    report(run.scene, run.first, kubelet);
    await run.look(5);
    expect(run.label() !== undefined).toBe(isDone);
  },
);

test('a Linux node whose kubelet reports the version without its build is not done', async () => {
  const run = await afterJob();
  report(run.scene, run.first, 'v1.36.4');
  await run.look(5);
  expect(run.label()).toBeUndefined();
});

test('the conditions of a Plan name each node whose kubelet kept its version, and both give this reason', async () => {
  const run = await afterJob({ concurrency: 2 });
  run.scene.complete('a');
  run.scene.complete('b');
  await run.look(14, MINUTE);
  const [, named] = / on Node (\S+):/.exec(run.complete()?.message ?? '') ?? [];
  const other = named === 'a' ? 'b' : 'a';
  expect(run.complete()).toMatchObject({
    reason: 'VersionNotReached',
    message: expect.stringMatching(new RegExp(`instead of .*; further failed nodes: ${other}$`)),
  });
  const failed = conditionOf(run.api.read(cattlePlans, 'p'), 'RefitFailedNodes');
  expect(failed?.reason).toBe('VersionNotReached');
  run.scene.killLeader();
  await run.look(3, MINUTE);
  expect(run.complete()?.message?.split('further failed nodes')).toHaveLength(2);
});

test.each(IMAGES)(
  'a complete Job of %s on a kubelet of v1.36.3+k3s1 ends the upgrade of its node: %#',
  async (_what, spec, options, isDone) => {
    const run = await afterJob(spec, options);
    expect(run.label() !== undefined).toBe(isDone);
    expect(run.node().spec?.unschedulable).not.toBe(true);
  },
);

test('a node whose kubelet keeps its version fails after deadlines.ready, and its Plan names both versions and the Job', async () => {
  const run = await afterJob();
  const { scene, first } = run;
  await scene.look(9, MINUTE);
  expect(run.complete()?.reason).not.toBe('VersionNotReached');
  await scene.look(4, MINUTE);
  const [job] = run.jobOf();
  expect(run.complete()).toMatchObject({
    status: 'False',
    reason: 'VersionNotReached',
    message: `Job system-upgrade/${job?.metadata.name} succeeded on Node ${first}: its kubelet reports ${OLD} instead of ${NEW}`,
  });
  expect([run.label(), run.atWork()]).toEqual([undefined, []]);
});

test('a failed node keeps its failure after Kubernetes has deleted its complete Job', async () => {
  const run = await afterJob();
  await run.look(16, MINUTE);
  for (const { metadata } of run.made()) run.api.remove(jobs, metadata.name);
  await run.look(20, MINUTE);
  expect(run.made()).toEqual([]);
  expect(run.complete()?.reason).toBe('VersionNotReached');
});

test('deadlines.ready of a policy decides when a node whose kubelet keeps its version fails', async () => {
  const policyOf = () => ({
    stepDeadlines: { answer: 1, download: 1, drain: 1, apply: 1, restart: 1, ready: 2 * MINUTE },
  });
  const run = await afterJob({}, { policyOf });
  await run.look(4, MINUTE);
  expect(run.complete()?.reason).toBe('VersionNotReached');
});

function retry({ scene, first }: Awaited<ReturnType<typeof afterJob>>): void {
  const text = `${first}@${rfc3339(scene.clock.now())}`;
  scene.api.change(cattlePlans, 'p', (plan) =>
    annotated(plan, { 'refit.upgrade.cattle.io/retry': text }),
  );
}

test('refit retry gives a node whose kubelet kept its version another Job, which ends when the kubelet reports the version', async () => {
  const run = await afterJob();
  await run.look(14, MINUTE);
  const [before] = run.jobOf();
  retry(run);
  await run.look(10);
  const [after] = run.jobOf();
  expect(after?.metadata.creationTimestamp).not.toBe(before?.metadata.creationTimestamp);
  report(run.scene, run.first, NEW);
  run.scene.complete(run.first);
  await run.look(5);
  expect(run.label()).toBeDefined();
});

test('refit retry gives a node whose kubelet reports the version by now no other Job', async () => {
  const run = await afterJob();
  await run.look(14, MINUTE);
  report(run.scene, run.first, NEW);
  const [before] = run.jobOf();
  retry(run);
  await run.look(10);
  expect(run.jobOf()).toEqual([before]);
  expect(run.label()).toBeDefined();
});

test('a request to retry a node that waits for the version of its kubelet gives it no other Job', async () => {
  const run = await afterJob();
  const [before] = run.jobOf();
  retry(run);
  await run.look(10);
  expect(run.jobOf()).toEqual([before]);
});

test('a new leader makes no second Job for a node that waits for the version of its kubelet', async () => {
  const run = await afterJob();
  const [before] = run.jobOf();
  run.scene.killLeader();
  await run.look(10);
  expect([run.jobOf(), run.label()]).toEqual([[before], undefined]);
  report(run.scene, run.first, NEW);
  await run.look(4);
  expect(run.label()).toBeDefined();
});

test('a cordon of somebody else that comes while a node waits for its kubelet stays', async () => {
  const run = await afterJob();
  run.api.change(nodes, run.first, (node: Node) => ({ ...node, spec: { unschedulable: true } }));
  await run.look(5);
  expect(run.node().spec?.unschedulable).toBe(true);
  report(run.scene, run.first, NEW);
  await run.look(5);
  expect([run.node().spec?.unschedulable, run.label()]).toEqual([true, expect.any(String)]);
});

test('a cordon of somebody else that comes during postCompleteDelay stays', async () => {
  const run = await afterJob({ upgrade: { image: 'example.com/script' }, postCompleteDelay: '1m' });
  expect(run.node().spec?.unschedulable).not.toBe(true);
  expect(run.label()).toBeUndefined();
  run.api.change(nodes, run.first, (node: Node) => ({ ...node, spec: { unschedulable: true } }));
  await run.look(5, MINUTE);
  expect([run.node().spec?.unschedulable, run.label()]).toEqual([true, expect.any(String)]);
});

function unready({ api, first, clock }: Awaited<ReturnType<typeof afterJob>>): void {
  api.change(nodes, first, (node: Node) => {
    const lastTransitionTime = rfc3339(clock.now());
    const ready = { type: 'Ready', status: 'False', lastTransitionTime } as const;
    return { ...node, status: { ...node.status, conditions: [ready] } };
  });
}

test('a node that is not Ready after its Job is uncordoned, and fails after deadlines.ready', async () => {
  const run = await afterJob();
  unready(run);
  await run.look(14, MINUTE);
  expect(run.node().spec?.unschedulable).not.toBe(true);
  expect(run.complete()).toMatchObject({
    reason: 'JobFailed',
    message: expect.stringContaining('not Ready'),
  });
});

test('a short outage of a node during a long postCompleteDelay is no failure', async () => {
  const run = await afterJob({ postCompleteDelay: '30m' });
  report(run.scene, run.first, NEW);
  await run.look(15, MINUTE);
  unready(run);
  await run.look(2, MINUTE);
  expect(run.complete()?.reason).not.toBe('JobFailed');
  expect(run.api.read(cattlePlans, 'p').status?.applying).toEqual([run.first]);
});
