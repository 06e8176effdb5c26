/** Proves which update `refit retry` retries, and which error it reports if a write is refused. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { kubeconfigOf } from '../../../../test/attacks/rig.ts';
import { NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import { systemClock } from '../../../util/clock.ts';
import {
  type MachineUpdate,
  RECORD_ANNOTATION,
  UPDATE_ANNOTATION,
  type UpdateRecord,
  withRecord,
  withRequest,
} from '../plan/machine-update.ts';
import { approve, retryMachine } from './machine-controls.ts';

async function against(answer: (request: IncomingMessage) => { code?: number; body: object }) {
  const written: string[] = [];
  const server = createServer((request, response) => {
    if (request.method === 'PATCH') written.push(request.url ?? '');
    const { code = 200, body } = answer(request);
    request.resume();
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const directory = await mkdtemp(join(tmpdir(), 'refit-machine-names-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = await kubeconfigOf(directory, `http://127.0.0.1:${port}`);
  const said: string[] = [];
  const parts = {
    clock: systemClock,
    output: { write: (text: string) => void said.push(text) },
    abort: new AbortController().signal,
  };
  return { kubeconfig, said, written, parts: parts as never };
}

/** A Node whose update failed, and whose annotation claims that it is Machine w1. */
function failedNode(name: string) {
  const update = {
    uid: 'u',
    machine: 'x/w1',
    version: 'v1.36.3',
    role: 'worker',
    requested: '2026-01-01T00:00:00Z',
    platform: 'linux-amd64',
    url: 'https://a/b',
  };
  const record = {
    uid: 'u',
    phase: 'failed',
    blocked: false,
    state: 'failed',
    since: '2026-01-01T00:00:00Z',
  };
  const annotations: Record<string, string> = {
    [NODE_ANNOTATIONS.machine]: 'w1',
    [UPDATE_ANNOTATION]: JSON.stringify(update),
    [RECORD_ANNOTATION]: JSON.stringify(record),
  };
  return { metadata: { name, annotations } };
}

test('of two Nodes that call themselves by the name of one Machine, neither takes the retry of the other', async () => {
  const bad = failedNode('bad');
  const good = failedNode('n1');
  const list = { kind: 'NodeList', metadata: {}, items: [bad, good] };
  const { kubeconfig, written, parts } = await against(({ method }) => ({
    body: method === 'GET' ? list : { kind: 'Node', ...bad },
  }));
  expect(await retryMachine('w1', { kubeconfig }, parts)).toBe(true);
  expect(new Set(written.map((url) => /nodes\/(\w+)/.exec(url)?.[1]))).toEqual(
    new Set(['bad', 'n1']),
  );
});

test('a Node that changes at that moment, as a kubelet may have it do, keeps no other from its retry', async () => {
  const bad = failedNode('bad');
  const good = failedNode('n1');
  const list = { kind: 'NodeList', metadata: {}, items: [bad, good] };
  const invalid = { kind: 'Status', reason: 'Invalid', code: 422, message: 'testing value failed' };
  const { kubeconfig, said, written, parts } = await against(({ method, url = '' }) => {
    if (method === 'GET') return { body: list };
    return url.includes('/bad')
      ? { code: 422, body: invalid }
      : { body: { kind: 'Node', ...good } };
  });
  await expect(retryMachine('w1', { kubeconfig }, parts)).rejects.toThrow('testing value failed');
  expect(new Set(written.map((url) => /nodes\/(\w+)/.exec(url)?.[1]))).toEqual(
    new Set(['bad', 'n1']),
  );
  expect(said).toEqual(['Machine w1 is updated again when Cluster API sends its next request.\n']);
});

test('a Node that calls itself by the name of another one does not take its retry', async () => {
  const bad = failedNode('bad');
  const list = { kind: 'NodeList', metadata: {}, items: [bad, { metadata: { name: 'w1' } }] };
  const { kubeconfig, said, written, parts } = await against(({ method }) => ({
    body: method === 'GET' ? list : { kind: 'Node', ...bad },
  }));
  expect(await retryMachine('w1', { kubeconfig }, parts)).toBe(false);
  expect([said, written]).toEqual([[], []]);
});

/** A Node whose Machine belongs to an owner, and is in this state. */
function ownedNode(state: string, { version = 'v1.35.0' } = {}) {
  const node = failedNode('n1');
  const [update, record] = [UPDATE_ANNOTATION, RECORD_ANNOTATION].map(
    (key) => JSON.parse(node.metadata.annotations[key] ?? '') as object,
  );
  const owner = { apiVersion: 'v1', kind: 'MachineDeployment', name: 'md', uid: 'o', rollout: 'r' };
  const owned = { ...update, owner } as MachineUpdate;
  const status = { nodeInfo: { kubeletVersion: version } };
  const requested = withRequest({ ...node, status }, owned);
  return withRecord(requested, owned, { ...record, state } as UpdateRecord);
}

test.each([
  ['failed', {}, 'n1'],
  ['pending', {}, 'n1'],
  ['done', { version: 'v1.36.3' }, 'n1'],
  // Only a new request can repeat these.
  ['done', {}, undefined],
  ['unsupported', {}, undefined],
])(
  'a Machine of an owner that is %s (%j): its request is removed only if the plan cannot try it again',
  async (state, more, target) => {
    const list = { kind: 'NodeList', metadata: {}, items: [ownedNode(state, more)] };
    const { kubeconfig, written, parts } = await against(({ method }) => ({
      body: method === 'GET' ? list : { kind: 'Node', metadata: { name: 'n1' } },
    }));
    const found = await retryMachine('machine/w1', { kubeconfig }, parts);
    expect(found).toEqual(target === undefined ? true : { names: [target], plan: 'capi/x/md' });
    expect(written.length).toBe(target === undefined ? 1 : 0);
  },
);

test.each(['foo/x', 'prod/cp-1', 'cp-1', 'machine/', 'machine/prod/cp-1'])(
  '%s is no object that can be approved',
  async (named) => {
    const { kubeconfig, written, parts } = await against(() => ({
      body: { kind: 'UpdaterSetList', metadata: {}, items: [] },
    }));
    await expect(approve(named, { kubeconfig, namespace: 'default' }, parts)).rejects.toMatchObject(
      {
        code: 'REFIT_USAGE',
        message: expect.stringContaining('write machine/NAME or machineset/NAME') as string,
      },
    );
    expect(written).toEqual([]);
  },
);

test('an UpdaterSet that changes at that moment is no bug of Refit', async () => {
  const status = { uncovered: [{ object: 'Machine default/cp-1', message: '', asked: '' }] };
  const set = {
    kind: 'UpdaterSet',
    metadata: { name: 'a', resourceVersion: '1' },
    spec: { uncovered: 'Ask' },
    status,
  };
  const conflict = {
    kind: 'Status',
    reason: 'Conflict',
    code: 409,
    message: 'the object has been modified',
    details: { name: 'a' },
  };
  const { kubeconfig, parts } = await against(({ method }) =>
    method === 'GET'
      ? { body: { kind: 'UpdaterSetList', metadata: {}, items: [set] } }
      : { code: 409, body: conflict },
  );
  const problem = await approve('machine/cp-1', { kubeconfig, namespace: 'default' }, parts).catch(
    describeProblem,
  );
  expect(problem).not.toMatchObject({ code: 'REFIT_INTERNAL' });
});
