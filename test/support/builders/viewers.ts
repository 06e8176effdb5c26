/** Starts viewers of the served dashboard at an API server whose answers a test changes. Tokens are `<user>-<number>`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished } from 'vitest';
import { createViewers, type Viewer } from '../../../src/cli/served-dashboard/viewers.ts';
import { MODULES } from '../../../src/dialects/modules.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { sendJson, sendStatus, startStubServer, whenReady } from '../../faults/stub-server.ts';
import { FakeClock } from '../clock/fake-clock.ts';

const REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
/** Ends the list at the beginning of a watch. */
const BOOKMARK = {
  type: 'BOOKMARK',
  object: {
    metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } },
  },
};

interface ServerState {
  /** The code and reason with which the server refuses to say whose token it is, by token. */
  readonly unnamed: Map<string, readonly [number, string]>;
  /** The code and reason with which the server refuses all lists, by user. */
  readonly refused: Map<string, readonly [number, string]>;
  /** The users whose lists get no answer. */
  readonly unanswered: Set<string>;
  /** True if the cluster has a kind of plan. */
  hasKinds: boolean;
  /** The tokens whose owner the server was asked for. */
  readonly reviews: string[];
  /** The users who listed the plans. */
  readonly lists: string[];
  /** The users of all watches of plans that are open. */
  readonly watches: string[];
  /** The Nodes of the cluster. */
  nodes: readonly Node[];
}

async function startApi() {
  const state: ServerState = {
    unnamed: new Map(),
    refused: new Map(),
    unanswered: new Set(),
    hasKinds: true,
    reviews: [],
    lists: [],
    watches: [],
    nodes: [],
  };
  const script = whenReady(({ url, headers }, response) => {
    const [, token = '', user = ''] =
      /^Bearer ((\w+)-\d+)$/.exec(headers.authorization ?? '') ?? [];
    const path = url.split('?')[0] ?? '';
    if (path.startsWith(REVIEW)) {
      state.reviews.push(token);
      const refusal = state.unnamed.get(token);
      if (refusal) return sendStatus(response, ...refusal);
      const status = { userInfo: { username: user } };
      return sendJson(response, 201, { metadata: { name: '' }, status });
    }
    if (/^\/apis\/[^/]+\/[^/]+$/.test(path))
      return state.hasKinds
        ? sendJson(response, 200, { resources: [{ name: 'plans' }] })
        : sendStatus(response, 404, 'NotFound');
    const isOfPlans = path.endsWith('/plans');
    const refusal = state.refused.get(user);
    if (url.includes('watch=')) {
      if (isOfPlans) noteWatch(state.watches, user, response);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(`${JSON.stringify(BOOKMARK)}\n`);
      return undefined;
    }
    if (isOfPlans) state.lists.push(user);
    if (isOfPlans && !state.hasKinds) return sendStatus(response, 404, 'NotFound');
    if (state.unanswered.has(user)) return undefined;
    if (refusal) return sendStatus(response, ...refusal);
    if (path.includes('/leases')) return sendStatus(response, 404, 'NotFound');
    const items = path === '/api/v1/nodes' ? state.nodes : [];
    return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items });
  });
  const server = await startStubServer(script);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return { state, port: server.port };
}

function noteWatch(watches: string[], user: string, response: ServerResponse): void {
  watches.push(user);
  response.on('close', () => watches.splice(watches.indexOf(user), 1));
}

/** Returns a page that is open until it is destroyed. */
function openPage() {
  const page = Object.assign(new PassThrough(), {
    writeHead: () => page,
    flushHeaders: () => undefined,
  });
  const seen: string[] = [];
  page.on('data', (chunk: Buffer) => seen.push(chunk.toString()));
  return { page, seen };
}

export async function startViewers() {
  const { state, port } = await startApi();
  const folder = await mkdtemp(join(tmpdir(), 'refit-viewers-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const config = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'a', user: { token: 'none' } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  const stop = new AbortController();
  onTestFinished(async () => {
    stop.abort(new Error('the test is over'));
    await rm(folder, { recursive: true });
  });
  const clock = new FakeClock();
  const viewers = createViewers({
    connection: { kubeconfig },
    cluster: 'prod',
    modules: MODULES.filter(({ name }) => name === 'autopilot'),
    clock,
    abort: stop.signal,
    random: () => 0,
  });
  const viewerOf = async (token: string) => {
    const found = await viewers.find(token);
    if (found.kind !== 'known') throw new Error(found.why);
    return found.viewer;
  };
  /** Opens a page of a viewer whose plans are followed. */
  const show = (viewer: Viewer) => {
    const { page, seen } = openPage();
    viewer.feed.subscribe(page as unknown as ServerResponse);
    const close = async (): Promise<void> => {
      page.destroy();
      await expect.poll(() => viewer.feed.pages).toBe(0);
    };
    return { seen, close };
  };
  /** Opens a page of the viewer with the token, and waits for the first state. It opens no page if the plans are not followed. */
  const open = async (token: string) => {
    const viewer = await viewerOf(token);
    const isFollowed = viewer.follow();
    if (!isFollowed)
      return {
        viewer,
        feed: viewer.feed,
        isFollowed,
        seen: [],
        close: async () => await Promise.resolve(),
      };
    const page = show(viewer);
    await expect.poll(() => viewer.feed.last).not.toBe('');
    return { viewer, feed: viewer.feed, isFollowed, ...page };
  };
  /** The `missing` sentences of the last state of a feed. */
  const missingIn = (last: string) =>
    last === '' ? undefined : (JSON.parse(last) as { missing: string[] }).missing;
  return { ...state, state, clock, viewers, viewerOf, show, open, missingIn, stop };
}
