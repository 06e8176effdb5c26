/** Shows that a finalizer comes and goes without touching those of others, and only on the version that was read. */
import { expect, test } from 'vitest';
import { sendJson, startStubServer } from '../../test/faults/stub-server.ts';
import { pods } from '../kube/resources.ts';
import { createClient } from '../kube/transport/http-client.ts';
import type { Pod } from '../kube/types.ts';
import { addFinalizer, removeFinalizer } from './finalizer.ts';

const OURS = 'upgrade.refit.dev/cleanup';

test.each<[string, typeof addFinalizer, string[], string[] | undefined]>([
  ['added beside others', addFinalizer, ['other'], ['other', OURS]],
  ['added as the first', addFinalizer, [], [OURS]],
  ['there already', addFinalizer, [OURS], undefined],
  ['removed', removeFinalizer, ['other', OURS], ['other']],
  ['gone already', removeFinalizer, ['other'], undefined],
])('%s', async (_name, act, before, after) => {
  await using server = await startStubServer((_request, response) =>
    sendJson(response, 200, { metadata: { name: 'p' } }),
  );
  const metadata = { name: 'p', namespace: 'ns', uid: 'u', resourceVersion: '7', finalizers: before };
  const pod: Pod = { metadata };
  const result = await act(createClient(server.config), pods, pod, OURS);
  if (after === undefined) {
    expect(result).toBe(pod);
    expect(server.requests).toEqual([]);
    return;
  }
  const [request] = server.requests;
  expect(request).toMatchObject({ method: 'PATCH', url: '/api/v1/namespaces/ns/pods/p?fieldManager=refit' });
  expect(JSON.parse(request?.body ?? '')).toEqual({ metadata: { uid: 'u', resourceVersion: '7', finalizers: after } });
});
