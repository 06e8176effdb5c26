/** Proves which workers must run the release before an UpdateConfig is up to date. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { targetedWorkers } from './targeted-workers.ts';

const all = [buildNode('w1', { labels: { pool: 'a' } }), buildNode('w2')];
const workersOf = (discovery: object) => ({
  commands: [{ k0supdate: { targets: { workers: { discovery } } } }],
});

test.each([
  ['all without a planSpec', {}, ['w1', 'w2']],
  ['all by an empty selector', workersOf({ selector: {} }), ['w1', 'w2']],
  ['those with a label', workersOf({ selector: { labels: 'pool=a' } }), ['w1']],
  ['those with a field', workersOf({ selector: { fields: 'metadata.name=w2' } }), ['w2']],
  ['those that are listed by name', workersOf({ static: { nodes: ['w2'] }, selector: {} }), ['w2']],
  ['none by a label that no Node has', workersOf({ selector: { labels: 'pool=b' } }), []],
  ['none if only controllers are listed', { commands: [{ k0supdate: { targets: {} } }] }, []],
])('the workers that the Plan of an UpdateConfig would update: %s', (_name, settings, names) => {
  const found = targetedWorkers(all, settings as Parameters<typeof targetedWorkers>[1]);
  expect(found.map(({ metadata }) => metadata.name)).toEqual(names);
});

test('a virtual Node never keeps a cluster from being up to date', () => {
  const virtual = buildNode('v1', { labels: { type: 'virtual-kubelet' } });
  const found = targetedWorkers([...all, virtual], { commands: undefined });
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['w1', 'w2']);
});
