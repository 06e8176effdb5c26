/** Tests that an API server is ready only if /readyz answers with 2xx, and that any other answer is reported. */
import { describe, expect, test } from 'vitest';
import type { EndpointHealth } from '../model/snapshot.ts';
import { askControlPlane } from './api-server-health.ts';

const answers: Readonly<Record<string, () => Promise<number>>> = {
  '10.0.0.1': async () => await Promise.resolve(200),
  '10.0.0.2': async () => await Promise.resolve(500),
  '10.0.0.3': async () => await Promise.resolve(302),
  '10.0.0.4': async () =>
    await Promise.reject(
      new Error('GET https://10.0.0.4:6443/readyz', {
        cause: new Error('connect ECONNREFUSED 10.0.0.4:6443'),
      }),
    ),
};

async function asked(host: string | undefined): Promise<EndpointHealth | undefined> {
  const ask = async (address: string): Promise<number> =>
    await (answers[address]?.() ?? Promise.resolve(599));
  return (await askControlPlane([{ name: 'c', host }], ask))[0];
}

describe('one API server', () => {
  test.each([
    ['200', '10.0.0.1', { ready: true }],
    ['an error', '10.0.0.2', { ready: false, detail: '/readyz says 500' }],
    ['a redirect', '10.0.0.3', { ready: false, detail: '/readyz says 302' }],
    [
      'no answer',
      '10.0.0.4',
      {
        ready: false,
        isSilent: true,
        detail: 'GET https://10.0.0.4:6443/readyz: connect ECONNREFUSED 10.0.0.4:6443',
      },
    ],
    ['no address', undefined, { ready: false, detail: 'has no InternalIP' }],
  ])('%s', async (_name, host, health) => {
    expect(await asked(host)).toEqual({ name: 'c', ...health });
  });
});

test('Refit asks all API servers at once, so a silent API server does not delay the others', async () => {
  const started: string[] = [];
  const silent = Promise.withResolvers<number>();
  const ask = async (host: string): Promise<number> => {
    started.push(host);
    return await (host === 'silent' ? silent.promise : Promise.resolve(200));
  };
  const all = askControlPlane(
    [
      { name: 'a', host: 'silent' },
      { name: 'b', host: 'ready' },
    ],
    ask,
  );
  expect(started).toEqual(['silent', 'ready']);
  silent.resolve(200);
  expect((await all).map(({ name, ready }) => [name, ready])).toEqual([
    ['a', true],
    ['b', true],
  ]);
});
