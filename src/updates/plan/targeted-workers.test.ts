/** Proves which workers must run the release before an UpdateConfig is up to date. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { targetedWorkers } from './targeted-workers.ts';

const all = [buildNode('w1', { labels: { pool: 'a' } }), buildNode('w2')];
const workersOf = (discovery: object) => ({
  commands: [{ k0supdate: { targets: { workers: { discovery } } } }],
});

test.each([
  ['without a planSpec', {}, ['w1', 'w2']],
  ['everything', workersOf({ selector: {} }), ['w1', 'w2']],
  ['by a label', workersOf({ selector: { labels: 'pool=a' } }), ['w1']],
  ['by a field', workersOf({ selector: { fields: 'metadata.name=w2' } }), ['w2']],
  ['by name', workersOf({ static: { nodes: ['w2'] }, selector: {} }), ['w2']],
  ['by a label that no Node has', workersOf({ selector: { labels: 'pool=b' } }), []],
  ['controllers only', { commands: [{ k0supdate: { targets: {} } }] }, []],
])('%s', (_name, settings, names) => {
  const found = targetedWorkers(all, settings as Parameters<typeof targetedWorkers>[1]);
  expect(found.map(({ metadata }) => metadata.name)).toEqual(names);
});

test('a virtual Node never keeps a cluster from being up to date', () => {
  const virtual = buildNode('v1', { labels: { type: 'virtual-kubelet' } });
  const found = targetedWorkers([...all, virtual], { commands: undefined });
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['w1', 'w2']);
});
