/** Shows when Refit concludes that an API server does not serve EvictionRequests. */
import { expect, test } from 'vitest';
import type { KubeClient } from '../kube/client.ts';
import { TransportError } from '../kube/status-error.ts';
import { areRequestsServed } from './requests-served.ts';

const { signal: abort } = new AbortController();
const listOf = (kind: string, name: string): string =>
  JSON.stringify({ resources: [{ kind, name, namespaced: true }] });
const SERVED = listOf('EvictionRequest', 'evictionrequests');

async function isServed(answer: { status: number; body: string } | Error) {
  const asked: unknown[] = [];
  const raw: KubeClient['raw'] = async (...request) => {
    asked.push(request);
    return await (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
  };
  const served = await areRequestsServed({ raw } as KubeClient, abort);
  return { served, asked };
}

test('the API server is asked for the kinds of the group, until the caller aborts', async () => {
  const { asked } = await isServed({ status: 200, body: SERVED });
  expect(asked).toEqual([['/apis/lifecycle.k8s.io/v1alpha1', { abort }]]);
  expect((asked[0] as [string, { abort: unknown }])[1].abort).toBe(abort);
});

type Answer = { status: number; body: string } | Error;

test.each<[string, Answer]>([
  ['the list has the kind', { status: 200, body: SERVED }],
  ['no answer arrives', new TransportError('no answer')],
  ['the server fails with 500', { status: 500, body: '' }],
  ['the server fails with 503', { status: 503, body: '' }],
  ['the credentials are refused', { status: 401, body: '' }],
  ['the right is missing', { status: 403, body: '' }],
  ['the server is overloaded', { status: 429, body: '' }],
])('EvictionRequests may be served if %s', async (_what, answer) => {
  expect((await isServed(answer)).served).toBe(true);
});

test.each<[string, Answer]>([
  ['the list has other kinds', { status: 200, body: listOf('Eviction', 'evictions') }],
  ['the group does not exist', { status: 404, body: '404 page not found' }],
  ['an answer other than 200 contains the kind', { status: 404, body: SERVED }],
  ['the server answers 499', { status: 499, body: '' }],
])('EvictionRequests are not served if %s', async (_what, answer) => {
  expect((await isServed(answer)).served).toBe(false);
});
