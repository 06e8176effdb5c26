/** Tests that handlers receive a deletion for each object to which no owner refers any more. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { configMaps } from '../resources.ts';
import { clientOver } from '../transport/http-client.ts';
import { createInformer } from './informer.ts';
import { createNamedInformer } from './named-informer.ts';

test('an object that is no longer named is told as deleted', async () => {
  const server = await startApiServer();
  const client = clientOver(server.caller);
  const stop = new AbortController();
  const owner = { metadata: { name: 'owner', namespace: 'default' }, data: { name: 'a' } };
  await client.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', ...owner });
  const named = { metadata: { name: 'a', namespace: 'kube-system' } };
  await client.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', ...named });
  const owners = createInformer(client, configMaps, { namespace: 'default' });
  const namesIn = ({ data }: { data?: Record<string, string> }): string[] =>
    data?.['name'] ? [data['name']] : [];
  const informer = createNamedInformer(client, configMaps, {
    namespace: 'kube-system',
    owners,
    namesIn,
  });
  const told: string[] = [];
  informer.addHandler({ deleted: ({ metadata }) => told.push(metadata.name) });
  const running = [owners.run(stop.signal), informer.run(stop.signal)];
  onTestFinished(async () => {
    stop.abort();
    await Promise.all(running);
    await server.stop();
  });
  await informer.whenSynced();
  await vi.waitFor(() => expect(informer.list()).toHaveLength(1), 60_000);
  await client.patch(
    configMaps,
    'owner',
    { data: { name: null } },
    { type: 'merge', namespace: 'default' },
  );
  await vi.waitFor(() => expect(told).toEqual(['a']), 60_000);
  expect(informer.list()).toEqual([]);
});
