/**
 * Proves that no Job starts for Nodes that share a host name, because the Job could run on the wrong Node and nobody
 * would notice.
 */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../../test/support/builders/cattle-scenes.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { HOSTNAME_LABEL } from './names.ts';

function begin(spec: Partial<CattleSpec> = {}) {
  const scene = buildCattleScene([buildCattlePlan('plan', spec)], ['a', 'b', 'c']);
  return {
    ...scene,
    /** Gives the node `b` a host name. */
    name: (host: string): void =>
      scene.api.change(nodes, 'b', ({ metadata, ...rest }: Node) => ({
        ...rest,
        metadata: { ...metadata, labels: { ...metadata.labels, [HOSTNAME_LABEL]: host } },
      })),
  };
}

test('both wait until each has its own, and the others go on', async () => {
  const { look, name, atWork, complete } = begin({ concurrency: 3 });
  name('a');
  await look();
  expect(atWork()).toEqual(['c']);
  complete('c');
  await look();
  expect(atWork()).toEqual([]);
  name('b');
  await look();
  expect(atWork().toSorted()).toEqual(['a', 'b']);
});

test('a running Job may end when a second node gets the same host name, but no other Job starts', async () => {
  const { look, name, atWork, complete, made, api } = begin({
    nodeSelector: { matchLabels: { twin: 'yes' } },
  });
  const select = (node: string): void =>
    api.change(nodes, node, ({ metadata, ...rest }: Node) => ({
      ...rest,
      metadata: { ...metadata, labels: { ...metadata.labels, twin: 'yes' } },
    }));
  select('a');
  await look();
  expect(atWork()).toEqual(['a']);
  name('a');
  select('b');
  await look();
  complete('a');
  await look();
  expect([atWork(), made().length]).toEqual([[], 1]);
  name('b');
  await look();
  expect(atWork()).toEqual(['b']);
});

test('a node that gets the host name of a node in progress does not start, and other nodes go on', async () => {
  const { api, look, atWork, complete } = buildCattleScene(
    [buildCattlePlan('plan')],
    ['a', 'b', 'c'],
  );
  await look();
  const [first = ''] = atWork();
  const [twin = '', other] = ['a', 'b', 'c'].filter((each) => each !== first);
  api.change(nodes, twin, ({ metadata, ...rest }: Node) => {
    const labels = { ...metadata.labels, [HOSTNAME_LABEL]: first };
    return { ...rest, metadata: { ...metadata, labels } };
  });
  await look();
  expect(atWork()).toEqual([first]);
  complete(first);
  await look(8);
  expect(atWork()).toEqual([other]);
});
