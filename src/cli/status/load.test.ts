/** Shows which dialects a command reads, depending on the kinds that the API server has. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { KubeClient, ListAllOptions } from '../../kube/client.ts';
import { type KubeObject, nodes } from '../../kube/resources.ts';
import { StatusError } from '../../kube/status-error.ts';
import { installedOf, loadOnce } from './load.ts';

const own = tableDialect as unknown as Dialect;
const other: Dialect = {
  ...own,
  name: 'other',
  plans: { ...own.plans, group: 'other.example.com' },
};
const onNodes: Dialect = {
  ...own,
  name: 'on-nodes',
  plans: nodes,
  planObjects: { isPlan: ({ metadata }) => metadata.name === 'planned' },
};

const KEPT = new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'no' });

async function installed(
  groups: readonly string[],
  name: string,
  seesNodes = true,
  kinds = own.plans.plural,
): Promise<string[]> {
  const client = {
    raw: async (path: string) => {
      const status =
        path === '/api/v1' || groups.some((group) => path.includes(`/${group}/`)) ? 200 : 404;
      return await Promise.resolve({ status, body: `{"resources":[{"name":"${kinds}"}]}` });
    },
    list: async () =>
      seesNodes ? await Promise.resolve({ items: [], metadata: {} }) : await Promise.reject(KEPT),
    listAll: async () => await Promise.resolve({ items: [buildNode(name)], metadata: {} }),
  } as unknown as KubeClient;
  const found = await installedOf({ client, abort: new AbortController().signal }, [
    own,
    other,
    onNodes,
  ]);
  return found.map((dialect) => dialect.name);
}

test.each<[string, string[], string, string[]]>([
  ['one of two kinds is served', ['example.com'], 'n1', ['table', 'on-nodes']],
  [
    'both kinds are served',
    ['example.com', 'other.example.com'],
    'n1',
    ['table', 'other', 'on-nodes'],
  ],
  ['neither kind is served, and no Node is a plan', [], 'n1', ['table', 'other', 'on-nodes']],
  ['neither kind is served, and a Node is a plan', [], 'planned', ['on-nodes']],
])('the dialects whose plans are listed if %s', async (_name, groups, node, wanted) => {
  expect(await installed(groups, node)).toEqual(wanted);
});

test('of kinds that every API server has, those that are kept from whoever asks are not there', async () => {
  expect(await installed(['example.com'], 'planned', false)).toEqual(['table']);
});

test('a group without the kind of the plans is not there', async () => {
  expect(await installed(['example.com'], 'planned', true, 'others')).toEqual(['on-nodes']);
});

test('plans that decisions depend on, too, are listed once', async () => {
  const listed: string[] = [];
  const listAll: KubeClient['listAll'] = async ({ plural }) => {
    listed.push(plural);
    return await Promise.resolve({ items: [], metadata: {} });
  };
  const watched = [...own.watched, { resource: own.plans, isRelevant: () => true }];
  const client = { listAll } as unknown as KubeClient;
  const { world } = await loadOnce(client, { ...own, watched }, new AbortController().signal);
  expect(world.list(own.plans)).toEqual([]);
  expect(listed.toSorted()).toEqual(['hosts', 'nodes', 'plans']);
});

test('of each object only what its dialect keeps of it is held in memory', async () => {
  const client = {
    listAll: async (_kind: unknown, options: ListAllOptions<KubeObject>) => {
      const items = [buildNode('n1')].map((node) => options.transform?.(node) ?? node);
      return await Promise.resolve({ items, metadata: {} });
    },
    list: async () => await Promise.resolve({ items: [], metadata: {} }),
  } as unknown as KubeClient;
  const transform = ({ metadata: { name } }: KubeObject): KubeObject => ({ metadata: { name } });
  const watched = [{ resource: nodes, isRelevant: () => true, transform }];
  const { world } = await loadOnce(client, { ...own, watched }, new AbortController().signal);
  expect(world.list(nodes)).toEqual([{ metadata: { name: 'n1' } }]);
});

test('objects are trimmed page by page, before the next page is read', async () => {
  const node = buildNode('w1');
  const whole = { ...node, metadata: { ...node.metadata, managedFields: [{ manager: 'k' }] } };
  const transform = ({ metadata }: KubeObject): KubeObject => ({
    metadata: { ...metadata, labels: {} },
  });
  const kept: unknown[] = [];
  const client = {
    listAll: async (_kind: unknown, options: ListAllOptions<KubeObject>) => {
      const items = [options.transform?.(whole) ?? whole];
      kept.push(...items);
      return await Promise.resolve({ items, metadata: {} });
    },
  } as unknown as KubeClient;
  const watched = [{ resource: nodes, isRelevant: () => true, transform }];
  const loaded = await loadOnce(client, { ...own, watched }, new AbortController().signal);
  expect(kept).toEqual([node, { metadata: { ...node.metadata, labels: {} } }]);
  expect(loaded.world.list(nodes)).toEqual([kept[1]]);
});
