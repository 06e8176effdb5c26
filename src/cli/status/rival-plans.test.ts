/** Shows the warning about two of Rancher's Plans that bring the same Node to different versions. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan, type CattleSpec } from '../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { validate } from '../../../test/support/builders/validation.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattlePlans } from '../../api/kinds.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { latestHash } from '../../dialects/cattle/plan/latest.ts';
import { jobs, nodes } from '../../kube/resources.ts';
import { mediumOf } from '../output.ts';
import { previewNew, previewOpen } from '../preview/preview-command.ts';
import { renderPreview } from '../preview/view.ts';
import { whyLines } from '../why/why-command.ts';
import { observe } from './observe.ts';
import { changesBetween, render } from './render.ts';

const NOW = T0 + MINUTE;
const LOOK = { hasColours: false, size: () => ({ columns: 400, rows: 24 }) };
const LEADER = { state: 'held', holder: 'abc', since: later(0) } as const;
const WORKER = 'node-role.kubernetes.io/worker';
const K3S = { upgrade: { image: 'rancher/k3s-upgrade' } };
const older = { ...K3S, version: 'v1.35.1+k3s1' };
const newer = { ...K3S, version: 'v1.36.0+k3s1' };

const hosts = ['a', 'b', 'c'].map((name) =>
  buildNode(name, {
    labels: { 'kubernetes.io/hostname': name, ...(name === 'a' ? {} : { [WORKER]: 'true' }) },
  }),
);
const WORKERS = { matchLabels: { [WORKER]: 'true' } };
const SERVERS = { matchExpressions: [{ key: WORKER, operator: 'DoesNotExist' }] };
const REMEDY = 'give both Plans the same version, or selectors that match no common Node';

function sceneOf(...plans: readonly CattlePlan[]) {
  const world = buildWorldOf([nodes, hosts], [jobs, []], [cattlePlans, plans]);
  return { dialect: cattleView, plans: () => plans, world };
}

async function warningsOf(...plans: readonly CattlePlan[]): Promise<(readonly string[])[]> {
  const views = await observe(sceneOf(...plans), buildViewParts(), NOW);
  return views.map(({ warnings = [] }) => warnings);
}

const pair = (one: Partial<CattleSpec>, other: Partial<CattleSpec>) =>
  [buildCattlePlan('one', one), buildCattlePlan('other', other)] as const;

test('status, why and preview name both Plans, a Node and both versions', async () => {
  const scene = sceneOf(...pair(older, { ...newer, nodeSelector: WORKERS }));
  const warning = `Plans system-upgrade/one (v1.35.1-k3s1) and system-upgrade/other (v1.36.0-k3s1) both select Node b and 1 more: ${REMEDY}`;
  const plans = await observe(scene, buildViewParts(), NOW);
  expect(plans[0]?.warnings).toEqual([warning]);
  expect(plans[1]?.warnings).toEqual([warning]);
  const view = { leader: LEADER, plans };
  const previews = await previewOpen([scene], buildViewParts(), NOW);
  for (const text of [
    render(view, 'text', NOW, LOOK),
    whyLines(view, undefined, NOW, mediumOf(LOOK)).join('\n'),
    renderPreview({ leader: LEADER, plans: previews }, NOW),
  ]) {
    expect(text).toMatch(
      /\n {2}warning +Plans system-upgrade\/one .* both select Node b and 1 more/,
    );
    expect(text.split('both select')).toHaveLength(2);
  }
});

test('a watch in a pipe warns once, and an ended plan warns of nothing', async () => {
  const scene = sceneOf(...pair(older, { ...newer, nodeSelector: WORKERS }));
  const plans = await observe(scene, buildViewParts(), NOW);
  const view = { leader: LEADER, plans };
  const lines = changesBetween(undefined, view, NOW);
  expect(lines.filter((line) => line.includes(' warns: Plans '))).toHaveLength(1);
  expect(changesBetween(view, view, NOW)).toEqual([]);
  const [one, other] = pair(older, newer);
  const hash = latestHash(one, 'v1.35.1-k3s1', []);
  const conditions = [
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version' },
    { type: 'Complete', status: 'True' },
  ];
  const status = { latestVersion: 'v1.35.1-k3s1', latestHash: hash, conditions };
  const label = { 'plan.upgrade.cattle.io/one': hash };
  const upgraded = hosts.map((host) => ({
    ...host,
    metadata: { ...host.metadata, labels: { ...host.metadata.labels, ...label } },
  }));
  const both = [{ ...one, status } as CattlePlan, other];
  const world = buildWorldOf([nodes, upgraded], [jobs, []], [cattlePlans, both]);
  const scenes = { dialect: cattleView, plans: () => both, world };
  const [ended, open] = await observe(scenes, buildViewParts(), NOW);
  expect([ended?.phase, open?.phase]).toEqual(['done', 'new']);
  expect(open?.warnings).toHaveLength(1);
  expect(ended?.warnings).toBeUndefined();
});

test.each<[string, Partial<CattleSpec>, Partial<CattleSpec>]>([
  ['the same version', older, older],
  ['the same version, written in another way', older, { ...K3S, version: 'v1.35.1-k3s1' }],
  ['other images', older, { ...newer, upgrade: { image: 'rancher/rke2-upgrade' } }],
  ['servers and agents', { ...older, nodeSelector: SERVERS }, { ...newer, nodeSelector: WORKERS }],
  ['one that takes no node', older, { ...newer, concurrency: 0 }],
  ['one without a version', older, { ...newer, version: '', channel: 'https://example.com' }],
  [
    'an image for everything that runs something else',
    { version: 'v1', upgrade: { image: 'ubuntu', command: ['patch'] } },
    { version: 'v2', upgrade: { image: 'ubuntu', command: ['reboot'] } },
  ],
])('nothing is said of %s', async (_name, one, other) => {
  expect(await warningsOf(...pair(one, other))).toEqual([[], []]);
});

test.each<[string, Partial<CattleSpec>, Partial<CattleSpec>]>([
  [
    'tags and registries of the image',
    older,
    { ...newer, upgrade: { image: 'docker.io/rancher/k3s-upgrade:v1' } },
  ],
  [
    'an image for everything that runs the same',
    { version: 'v1', upgrade: { image: 'ubuntu', command: ['patch'] } },
    { version: 'v2', upgrade: { image: 'ubuntu', command: ['patch'] } },
  ],
])('%s make no difference', async (_name, one, other) => {
  expect(await warningsOf(...pair(one, other))).toMatchObject([
    [expect.anything()],
    [expect.anything()],
  ]);
});

test('a preview of a file compares with the cluster and the files, and a Plan never with itself', async () => {
  const [one, other] = pair(older, newer);
  const [, changed] = pair(older, { ...older, nodeSelector: {} });
  const parts = buildViewParts();
  const told = async (plan: CattlePlan, fromFiles: readonly CattlePlan[], there: CattlePlan) =>
    (await previewNew(plan, sceneOf(there), { ...parts, fromFiles }, NOW)).warnings?.length ?? 0;
  expect(await told(one, [one], other)).toBe(1);
  expect(await told(one, [one, other], one)).toBe(1);
  expect(await told(one, [one, changed], other)).toBe(0);
  const { namespace: _namespace, ...metadata } = other.metadata;
  const unplaced = { ...other, metadata, spec: older } as CattlePlan;
  expect(await told(unplaced, [unplaced], other)).toBe(0);
});

async function validated(...plans: readonly CattlePlan[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-rivals-'));
  try {
    const paths = plans.map((_plan, index) => join(folder, `${index}.yaml`));
    for (const [index, path] of paths.entries()) await writeFile(path, stringify(plans[index]));
    let told = '';
    await validate(paths, (text) => {
      told += text;
    });
    return told;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const In = (key: string, ...values: string[]) => ({ key, operator: 'In', values });

type Selector = NonNullable<CattleSpec['nodeSelector']>;

test.each<[string, Selector, Selector]>([
  ['equal', WORKERS, WORKERS],
  ['equal, written in another way', WORKERS, { matchExpressions: [In(WORKER, 'true')] }],
  ['all nodes', {}, WORKERS],
  ['a superset', WORKERS, { matchLabels: { [WORKER]: 'true', zone: 'a' } }],
  ['more values', { matchExpressions: [In('zone', 'a', 'b')] }, { matchLabels: { zone: 'a' } }],
  [
    'any value',
    { matchExpressions: [{ key: 'zone', operator: 'Exists' }] },
    { matchLabels: { zone: 'a' } },
  ],
  [
    'fewer exceptions',
    { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] },
    { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a', 'b'] }] },
  ],
  [
    'an exception for nodes without the label',
    { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] },
    { matchExpressions: [{ key: 'zone', operator: 'DoesNotExist' }] },
  ],
])('validate warns of selectors where one is %s, once for a pair', async (_name, wide, narrow) => {
  for (const [first, second] of [[wide, narrow] as const, [narrow, wide] as const]) {
    const told = await validated(
      ...pair({ ...older, nodeSelector: first }, { ...newer, nodeSelector: second }),
    );
    expect(told.match(/warning/g)).toHaveLength(1);
    expect(told).toContain(
      `1.yaml: warning: Plans system-upgrade/one (v1.35.1-k3s1) and system-upgrade/other (v1.36.0-k3s1) both select the same Nodes: ${REMEDY}\n`,
    );
  }
});

test.each<[string, Partial<CattleSpec>, Partial<CattleSpec>]>([
  [
    'selectors that may meet',
    { nodeSelector: { matchLabels: { zone: 'a' } } },
    { nodeSelector: { matchLabels: { rack: 'r' } } },
  ],
  ['servers and agents', { nodeSelector: SERVERS }, { nodeSelector: WORKERS }],
  ['the same version', {}, older],
])('validate says nothing of %s', async (_name, one, other) => {
  expect(await validated(...pair({ ...older, ...one }, { ...newer, ...other }))).not.toContain(
    'warning',
  );
});
