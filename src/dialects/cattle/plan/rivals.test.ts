/** Proves which Plans conflict, and that the warning names both, their versions, and a Node of the cluster. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { nodes } from '../../../kube/resources.ts';
import { rivalsAmong, rivalsInCluster } from './rivals.ts';

const REMEDY = 'give both Plans the same version, or selectors that match no common Node';
const INSTALLER = 'rancher/k3s-upgrade';

type Upgrade = CattleSpec['upgrade'] | undefined;

/** A Plan in a file may lack parts of the spec that the type requires. */
type OddSpec = { readonly [Field in keyof CattleSpec]?: CattleSpec[Field] | undefined };

const planWith = (name: string, spec: OddSpec): CattlePlan =>
  buildCattlePlan(name, spec as Partial<CattleSpec>);
const older = (upgrade: Upgrade, spec: OddSpec = {}): CattlePlan =>
  planWith('one', { version: 'v1', upgrade, ...spec });
const newer = (upgrade: Upgrade, spec: OddSpec = {}): CattlePlan =>
  planWith('other', { version: 'v2', upgrade, ...spec });

const labelled = (name: string, label: string) =>
  buildNode(name, { labels: { 'kubernetes.io/hostname': name, [label]: 'yes' } });
const world = buildWorldOf([
  nodes,
  [labelled('a', 'server'), labelled('b', 'agent'), labelled('c', 'agent')],
]);
const WITH = (label: string) => ({ nodeSelector: { matchLabels: { [label]: 'yes' } } });

const inNamespace = (namespace: string | undefined, plan: CattlePlan): CattlePlan => {
  const { namespace: _own, ...metadata } = plan.metadata;
  return {
    ...plan,
    metadata: { ...metadata, ...(namespace === undefined ? {} : { namespace }) },
  };
};

function conflict(upgrade: Upgrade, its: Upgrade): boolean {
  const one = older(upgrade);
  const other = newer(its);
  const found = rivalsAmong(one, [other]);
  expect(rivalsAmong(other, [one]), 'the same sentence for both Plans').toEqual(found);
  return found.length > 0;
}

test.each([
  ['a tag', `${INSTALLER}:v1`, `${INSTALLER}:v1.36.0-k3s1`],
  ['a digest', INSTALLER, `${INSTALLER}@sha256:${'0'.repeat(64)}`],
  ['a tag and a digest', INSTALLER, `${INSTALLER}:v1@sha256:${'0'.repeat(64)}`],
  ['the name of the usual registry', INSTALLER, `docker.io/${INSTALLER}`],
  ['the other name of the usual registry', INSTALLER, `index.docker.io/${INSTALLER}`],
  ['a tag on a registry with a port', 'host:5000/k3s-upgrade', 'host:5000/k3s-upgrade:v2'],
  ['the folder of official images', 'ubuntu', 'docker.io/library/ubuntu'],
])('%s makes no other image', (_what, image, its) => {
  expect(conflict({ image }, { image: its })).toBe(true);
});

test.each([
  ['another product', INSTALLER, 'rancher/rke2-upgrade'],
  ['another port of the registry', 'host:5000/k3s-upgrade', 'host:6000/k3s-upgrade'],
  ['a mirror', `mirror/docker.io/${INSTALLER}`, `mirror/${INSTALLER}`],
])('%s is another image', (_what, image, its) => {
  expect(conflict({ image }, { image: its })).toBe(false);
});

test('an image for everything conflicts only if both Plans run the same command with the same arguments', () => {
  const image = 'ubuntu';
  expect(conflict({ image }, { image })).toBe(true);
  expect(conflict({ image }, { image, command: [], args: [] })).toBe(true);
  expect(conflict({ image, command: ['sh'] }, { image, command: ['sh'] })).toBe(true);
  expect(conflict({ image, command: ['sh'] }, { image })).toBe(false);
  expect(conflict({ image, args: ['patch'] }, { image, args: ['patch'] })).toBe(true);
  expect(conflict({ image, args: ['patch'] }, { image, args: ['reboot'] })).toBe(false);
  expect(conflict({ image: INSTALLER, args: ['a'] }, { image: INSTALLER, args: ['b'] })).toBe(true);
});

test('Plans without an image do not conflict', () => {
  expect(conflict(undefined, undefined)).toBe(false);
  expect(conflict({ image: '' }, { image: '' })).toBe(false);
  expect(conflict({ image: INSTALLER }, undefined)).toBe(false);
});

test('a Plan that cannot start, or may start on no node, conflicts with nothing', () => {
  const upgrade = { image: INSTALLER };
  const one = older(upgrade);
  for (const spec of [{ concurrency: 0 }, { concurrency: undefined }, { version: '' }]) {
    const off = newer(upgrade, spec);
    expect(rivalsAmong(one, [off])).toEqual([]);
    expect(rivalsAmong(off, [one])).toEqual([]);
  }
  expect(rivalsAmong(one, [newer(upgrade, { version: 'v1' })])).toEqual([]);
  const { spec: _spec, ...empty } = newer(upgrade);
  expect(rivalsAmong(one, [empty])).toEqual([]);
  expect(rivalsAmong(empty, [one])).toEqual([]);
});

test('a Plan is not its own rival, even if a file leaves out its namespace', () => {
  const upgrade = { image: INSTALLER };
  const one = older(upgrade);
  const changed = older(upgrade, { version: 'v2' });
  expect(rivalsAmong(one, [changed])).toEqual([]);
  expect(rivalsAmong(one, [inNamespace(undefined, changed)])).toEqual([]);
  expect(rivalsAmong(inNamespace(undefined, one), [changed])).toEqual([]);
  expect(rivalsAmong(one, [inNamespace('elsewhere', changed)])).toEqual([
    `Plans elsewhere/one (v2) and system-upgrade/one (v1) both select the same Nodes: ${REMEDY}`,
  ]);
  expect(rivalsAmong(inNamespace(undefined, one), [newer(upgrade)])).toEqual([
    `Plans default/one (v1) and system-upgrade/other (v2) both select the same Nodes: ${REMEDY}`,
  ]);
});

test('selectors conflict by themselves if one of them selects all Nodes of the other', () => {
  const upgrade = { image: INSTALLER };
  const agents = older(upgrade, WITH('agent'));
  expect(rivalsAmong(agents, [newer(upgrade)])).toHaveLength(1);
  expect(rivalsAmong(older(upgrade), [newer(upgrade, WITH('agent'))])).toHaveLength(1);
  expect(rivalsAmong(agents, [newer(upgrade, WITH('server'))])).toEqual([]);
  const none = { nodeSelector: undefined };
  expect(rivalsAmong(agents, [newer(upgrade, none)])).toEqual([]);
  expect(rivalsAmong(older(upgrade, none), [newer(upgrade)])).toEqual([]);
});

test('the cluster shows the Node on which two Plans meet', () => {
  const upgrade = { image: INSTALLER };
  const titles = 'Plans system-upgrade/one (v1) and system-upgrade/other (v2)';
  const found = (one: CattlePlan, ...all: Parameters<typeof rivalsInCluster>[2]) =>
    rivalsInCluster(one, world, all);
  expect(found(older(upgrade), newer(upgrade, WITH('server')))).toEqual([
    `${titles} both select Node a: ${REMEDY}`,
  ]);
  expect(found(newer(upgrade, WITH('agent')), older(upgrade))).toEqual([
    `${titles} both select Node b and 1 more: ${REMEDY}`,
  ]);
  expect(found(older(upgrade, WITH('server')), newer(upgrade, WITH('agent')))).toEqual([]);
  expect(found(older(upgrade, WITH('rack')), newer(upgrade))).toEqual([]);
});

test('the last of two Plans with one name counts', () => {
  const upgrade = { image: INSTALLER };
  const found = (...all: readonly CattlePlan[]) => rivalsInCluster(older(upgrade), world, all);
  const third = newer(upgrade, { version: 'v3' });
  expect(found(newer(upgrade), third)).toEqual([expect.stringContaining('other (v3)')]);
  expect(found(newer(upgrade), newer(upgrade, { version: 'v1' }))).toEqual([]);
  expect(found(newer(upgrade), inNamespace('elsewhere', third))).toHaveLength(2);
});

test('plans of other dialects are not compared', () => {
  const { apiVersion: _version, ...unnamed } = newer({ image: INSTALLER });
  const others = [unnamed, { ...unnamed, apiVersion: 'autopilot.k0sproject.io/v1beta2' }];
  expect(rivalsInCluster(older({ image: INSTALLER }), world, others)).toEqual([]);
});
