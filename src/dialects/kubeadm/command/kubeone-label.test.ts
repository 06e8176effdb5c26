/**
 * Proves that a rollout sets and removes the label of KubeOne, and never changes labels of other tools without --force.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startApiServer } from '../../../../sandbox/api-server/api-server.ts';
import { annotated, type Node, nodes } from '../../../kube/resources.ts';
import { aroundRequests } from '../../../kube/transport/bounded-client.ts';
import { clientOver } from '../../../kube/transport/http-client.ts';
import { KUBEONE_LABEL, LABEL_OWNER } from '../plan/kubeone-label.ts';
import { removeLabels, setLabels } from './kubeone-label.ts';

/** Starts an API server with these Nodes. `before` is called before each request of the writer. */
async function cluster(
  found: readonly Node['metadata'][],
  before: (what?: string) => Promise<void> = async () => await Promise.resolve(),
) {
  const server = await startApiServer();
  onTestFinished(async () => await server.stop());
  const own = clientOver(server.caller);
  for (const metadata of found)
    await own.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata });
  const writer = aroundRequests(own, async (what, options, send) => {
    await before(what);
    return await send(options);
  });
  const labels = async (): Promise<unknown[]> =>
    (await own.listAll(nodes)).items.map(({ metadata }) => [
      metadata.name,
      metadata.labels?.[KUBEONE_LABEL],
      metadata.annotations?.[LABEL_OWNER],
    ]);
  return { own, labels, tools: { writer } };
}

const FOREIGN = { labels: { [KUBEONE_LABEL]: '' } };

test('sets the label kubeone.io/upgrade-in-progress with an empty value, as KubeOne does, and the name of the run; leaves out Nodes that do not exist', async () => {
  const { labels, tools } = await cluster([{ name: 'cp1' }, { name: 'w1' }]);
  await setLabels(['cp1', 'gone'], 'me', false, tools);
  expect(await labels()).toEqual([
    ['cp1', '', 'me'],
    ['w1', undefined, undefined],
  ]);
});

test('takes over and removes what an earlier run of Refit left; a label of KubeOne stays', async () => {
  const left = { ...FOREIGN, annotations: { [LABEL_OWNER]: 'earlier' } };
  const { labels, tools } = await cluster([
    { name: 'cp1', ...left },
    { name: 'w1', ...FOREIGN },
    { name: 'w2', annotations: left.annotations },
  ]);
  await setLabels(['cp1'], 'me', false, tools);
  expect((await labels())[0]).toEqual(['cp1', '', 'me']);
  await removeLabels(tools);
  expect(await labels()).toEqual([
    ['cp1', undefined, undefined],
    ['w1', '', undefined],
    ['w2', undefined, undefined],
  ]);
});

test('refuses a label that KubeOne sets between read and write', async () => {
  let isSet = false;
  const { own, labels, tools } = await cluster([{ name: 'cp1' }], async (what) => {
    if (what !== 'patch nodes' || isSet) return;
    isSet = true;
    await own.patch(nodes, 'cp1', { metadata: FOREIGN }, { type: 'merge' });
  });
  await expect(setLabels(['cp1'], 'me', false, tools)).rejects.toThrow(
    'F4: in the meantime, a KubeOne upgrade has begun on cp1',
  );
  expect(await labels()).toEqual([['cp1', '', undefined]]);
});

test('keeps what a heartbeat writes between read and write', async () => {
  let isWritten = false;
  const { own, tools } = await cluster([{ name: 'cp1' }], async (what) => {
    if (what !== 'patch nodes' || isWritten) return;
    isWritten = true;
    await own.replace(nodes, annotated(await own.get(nodes, 'cp1'), { other: 'new' }));
  });
  await setLabels(['cp1'], 'me', false, tools);
  expect((await own.get(nodes, 'cp1')).metadata).toMatchObject({
    labels: { [KUBEONE_LABEL]: '' },
    annotations: { other: 'new', [LABEL_OWNER]: 'me' },
  });
});

test('with --force, Refit takes over KubeOne upgrade labels on all Nodes, and none is left at the end', async () => {
  const { labels, tools } = await cluster([
    { name: 'cp1', ...FOREIGN },
    { name: 'w9', ...FOREIGN },
  ]);
  await setLabels(['cp1'], 'me', true, tools);
  expect(await labels()).toEqual([
    ['cp1', '', 'me'],
    ['w9', undefined, undefined],
  ]);
  await removeLabels(tools);
  expect(await labels()).toEqual([
    ['cp1', undefined, undefined],
    ['w9', undefined, undefined],
  ]);
});
