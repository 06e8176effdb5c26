/** Tests tokens without rights that open the served page, to take the places of viewers who may see plans. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { createViewers } from '../../src/cli/served-dashboard/viewers.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { systemClock } from '../../src/util/clock.ts';
import { sendJson, startStubServer, whenReady } from '../faults/stub-server.ts';

const REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
/** Ends the list at the beginning of a watch. */
const BOOKMARK = {
  type: 'BOOKMARK',
  object: {
    metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } },
  },
};

/** Starts an API server whose tokens are `<user>-<number>`, and on which the user eve may list nothing. */
async function startViewers() {
  const script = whenReady(({ url, headers }, response) => {
    const [, user = ''] = /^Bearer (\w+)-/.exec(headers.authorization ?? '') ?? [];
    const path = url.split('?')[0] ?? '';
    if (path.startsWith(REVIEW))
      return sendJson(response, 201, {
        metadata: { name: '' },
        status: { userInfo: { username: user } },
      });
    if (/^\/apis\/[^/]+\/[^/]+$/.test(path))
      return sendJson(response, 200, { resources: [{ name: 'plans' }] });
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure' };
    if (user.startsWith('eve'))
      return sendJson(response, 403, { ...status, code: 403, reason: 'Forbidden', message: 'no' });
    if (url.includes('watch=')) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .write(`${JSON.stringify(BOOKMARK)}\n`);
      return undefined;
    }
    if (path.includes('/leases'))
      return sendJson(response, 404, { ...status, code: 404, reason: 'NotFound', message: 'no' });
    return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: [] });
  });
  const server = await startStubServer(script);
  const folder = await mkdtemp(join(tmpdir(), 'refit-places-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const config = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${server.port}` } }],
    users: [{ name: 'a', user: { token: 'none' } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  const stop = new AbortController();
  const viewers = createViewers({
    connection: { kubeconfig },
    modules: MODULES.filter(({ name }) => name === 'autopilot'),
    clock: systemClock,
    abort: stop.signal,
  });
  onTestFinished(async () => {
    stop.abort(new Error('the test is over'));
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  return async (token: string) => {
    const found = await viewers.find(token);
    if (found.kind !== 'known') throw new Error(found.why);
    const isFollowed = found.viewer.follow();
    const page = Object.assign(new PassThrough(), {
      writeHead: () => page,
      flushHeaders: () => undefined,
    });
    page.resume();
    if (isFollowed) found.viewer.feed.subscribe(page as unknown as ServerResponse);
    return { isFollowed, feed: found.viewer.feed };
  };
}

test('a viewer with rights gets a place although many tokens without rights have open pages', async () => {
  const open = await startViewers();
  for (let user = 0; user < 12; user++) {
    const { isFollowed, feed } = await open(`eve${user}-1`);
    expect(isFollowed).toBe(true);
    await expect.poll(() => feed.last).toContain('"missing":["');
  }
  const { isFollowed, feed } = await open('ada-1');
  expect(isFollowed).toBe(true);
  await expect.poll(() => feed.last).toContain('"missing":[]');
});

test('a new user takes a place of a user who has several', async () => {
  const open = await startViewers();
  for (const token of ['ada-1', 'ada-2', 'ada-3', 'ada-4', 'bob-1', 'bob-2', 'bob-3', 'bob-4']) {
    const { feed } = await open(token);
    await expect.poll(() => feed.last).toContain('"plans":[]');
  }
  const { isFollowed, feed } = await open('carol-1');
  expect(isFollowed).toBe(true);
  await expect.poll(() => feed.last).toContain('"missing":[]');
});
