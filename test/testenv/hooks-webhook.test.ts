/** Tests webhooks of a policy on a real API server, with the receiver of the examples and with a receiver that fails. */
import { createHmac } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { namespaces, secrets } from '../../src/kube/resources.ts';
import { ifNew } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { startProcess } from '../../tools/controlplane/process.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAMESPACE = 'refit-system';
const NAME = 'refit-hooks';
const KEY = 'a key of these tests only';
const RIGHTS = 'deploy/rbac-hooks.yaml';
/** Appends its input as one line to the file `calls`, and ends when the file `go` exists. */
const COMMAND = 'cat >> calls; echo >> calls; until [ -e go ]; do sleep 0.05; done';

const subject = { commonName: 'hooks' };
const validity = validFrom(Date.now());
const authority = createAuthority(subject, validity);
const own = issueServer(
  { subject, key: authority.key },
  { dns: [], addresses: ['127.0.0.1'] },
  validity,
);

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await ifNew(admin.create(namespaces, { metadata: { name: NAMESPACE } }));
  await apply(await readFile(RIGHTS, 'utf8'));
});
afterAll(async () => {
  // A later test file may delete the namespace. If these roles were still in it, that file would fail because roles are
  // missing.
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  admin.close();
});

async function useSecret(): Promise<void> {
  const data = { key: btoa(KEY), 'ca.crt': btoa(authority.certificate) };
  const metadata = { name: NAME, namespace: NAMESPACE };
  await admin.create(secrets, { metadata, data }, { namespace: NAMESPACE });
  onTestFinished(async () => await admin.delete(secrets, NAME, { namespace: NAMESPACE }));
}

async function usePolicy(name: string, port: number): Promise<void> {
  const webhook = { url: `https://127.0.0.1:${port}/hook`, secretName: NAME };
  const spec: UpgradePolicySpec = {
    plans: [{ dialect: 'autopilot' }],
    hooks: [{ name: 'tell', when: 'BeforeDrain', webhook, timeout: '10m' }],
  };
  await admin.create(upgradePolicies, buildUpgradePolicy(name, spec));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

async function why(node: string): Promise<string> {
  const viewer = await kubeconfigFor('viewer');
  return (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join('\n');
}

async function events(): Promise<string> {
  const lines = 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}';
  return (await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines])).stdout;
}

interface Receiver {
  readonly port: number;
  readonly calls: () => Promise<string[]>;
  /** Creates the file that lets the commands end. */
  readonly go: () => Promise<void>;
}

/** Starts the receiver of the examples, with a command that waits. */
async function startReceiver(): Promise<Receiver> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-hook-'));
  onTestFinished(async () => await rm(directory, { recursive: true, force: true }));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  const files = { 'tls.crt': own.certificate, 'tls.key': own.key, key: KEY };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(directory, name), text, { mode: 0o600 });
  const port = await freePort();
  const example = new URL('../../examples/hook-receiver.ts', import.meta.url).pathname;
  const command = `cd ${directory}; ${COMMAND}`;
  const key = join(directory, 'key');
  const receiver = await startProcess({
    name: 'hook-receiver',
    command: process.execPath,
    args: [example, String(port), directory, key, directory, 'sh', '-c', command],
    directory,
    ready: async () => await isListening(port),
    clock: systemClock,
  });
  onTestFinished(async () => await receiver.stop());
  return {
    port,
    calls: async () => {
      const text = await readFile(join(directory, 'calls'), 'utf8').catch(() => '');
      return text.split('\n').filter((line) => line !== '');
    },
    go: async () => await writeFile(join(directory, 'go'), ''),
  };
}

async function isListening(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const end = (isUp: boolean) => () => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}

interface Sent {
  readonly body: string;
  readonly id: string;
  /** Seconds since the request was signed. */
  readonly age?: number;
  readonly key?: string;
  readonly method?: string;
}

/** Sends a request to the receiver as Refit does, and returns the status and the text of its answer. */
async function send(port: number, { body, id, age = 0, key = KEY, method = 'POST' }: Sent) {
  const timestamp = String(Math.floor(Date.now() / 1000) - age);
  const signature = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex');
  const headers = {
    'idempotency-key': id,
    'refit-timestamp': timestamp,
    'refit-signature': `sha256=${signature}`,
  };
  return await new Promise<string>((resolve, reject) => {
    const options = { method, headers, agent: false, ca: authority.certificate } as const;
    const sent = request(`https://127.0.0.1:${port}/hook`, options, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('end', () =>
        resolve(`${response.statusCode} ${Buffer.concat(parts).toString()}`),
      );
    });
    sent.once('error', reject).end(method === 'POST' ? body : undefined);
  });
}

test('a node starts after the receiver of the examples has done its work, once', async () => {
  const receiver = await startReceiver();
  await usePolicy('webhook', receiver.port);
  await using puppets = await Puppets.create(admin, 'webhook-e1');
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.until(async () =>
    expect(await why('webhook-e1')).toContain(
      `the hook tell of UpgradePolicy webhook must succeed for webhook-e1: Secret ${NAMESPACE}/${NAME} does not exist`,
    ),
  );
  expect(await receiver.calls()).toEqual([]);
  await useSecret();
  const [body = ''] = await vi.waitFor(async () => {
    const calls = await receiver.calls();
    expect(calls).toHaveLength(1);
    return calls;
  }, PATIENCE);
  const { id, ...said } = JSON.parse(body) as { readonly id: string };
  expect(said).toMatchObject({ hook: 'tell', when: 'BeforeDrain', node: 'webhook-e1' });
  const running = '503 {"message":"the command runs"}';
  expect(await send(receiver.port, { body, id })).toBe(running);
  expect(await puppets.signal('webhook-e1')).toBeUndefined();
  expect(await puppets.cordon('webhook-e1')).toBe('none');

  await receiver.go();
  await puppets.says('webhook-e1', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await send(receiver.port, { body, id })).toBe('200 {"message":"done"}');
  expect(await receiver.calls()).toHaveLength(1);
  expect(leader.stderr.join('\n')).not.toContain(KEY);
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('the receiver of the examples refuses what the leader did not send just now', async () => {
  const { port, calls, go } = await startReceiver();
  await go();
  const id = 'refit-tell-1';
  const body = JSON.stringify({ id });
  const answers: [Partial<Sent>, string][] = [
    [{ key: 'another key than that' }, '401 {"message":"the signature is wrong"}'],
    [{ age: 301 }, '401 {"message":"the request is too old, or a clock is wrong"}'],
    [{ age: -302 }, '401 {"message":"the request is too old, or a clock is wrong"}'],
    [{ id: 'other' }, '400 {"message":"the header Idempotency-Key is not the id of the body"}'],
    [{ method: 'PUT' }, '405 {"message":"only POST is answered"}'],
  ];
  for (const [odd, expected] of answers)
    expect(await send(port, { body, id, ...odd })).toBe(expected);
  expect(await calls()).toEqual([]);
  expect(await send(port, { body, id, age: 290 })).toBe(
    '503 {"message":"the command was started"}',
  );
  await vi.waitFor(
    async () => expect(await send(port, { body, id })).toBe('200 {"message":"done"}'),
    PATIENCE,
  );
  expect(await calls()).toEqual([body]);
});

test('every leader sends the same key, and a refusal holds the plan until the node is retried', async () => {
  let answer: [status: number, text: string] = [503, 'not yet'];
  await using server = await startStubServer(
    (_request, response) => void response.writeHead(answer[0]).end(answer[1]),
    { cert: own.certificate, key: own.key },
  );
  const keys = (): Set<unknown> =>
    new Set(server.requests.map(({ headers }) => headers['idempotency-key']));
  await useSecret();
  await usePolicy('webhook-odd', server.port);
  await using puppets = await Puppets.create(admin, 'webhook-w1', 'webhook-w2');
  await using killed = await lead();
  await puppets.plan(1);
  await puppets.until(() => expect(server.requests).not.toHaveLength(0));
  await killed.stop('SIGKILL');
  const before = server.requests.length;
  await using leader = await lead();
  await puppets.until(() => expect(server.requests.length).toBeGreaterThan(before));
  expect(keys().size).toBe(1);
  expect(await puppets.signal('webhook-w1')).toBeUndefined();

  answer = [422, '{"message":"the pager is silent"}'];
  const refused = `the hook tell of UpgradePolicy webhook-odd failed: 127.0.0.1:${server.port} answered 422 Unprocessable Entity: the pager is silent`;
  await puppets.until(async () =>
    expect(await events()).toContain(`HookFailed webhook-w1: ${refused}`),
  );
  await puppets.until(async () =>
    expect(await why('webhook-w1')).toContain(
      'answered 422 Unprocessable Entity: the pager is silent',
    ),
  );
  expect(keys().size).toBe(1);
  expect(await puppets.cordon('webhook-w1')).toBe('none');
  for (const name of puppets.names) expect(await puppets.signal(name)).toBeUndefined();

  answer = [200, ''];
  const operator = await kubeconfigFor('operator');
  expect((await runRefit('retry', 'webhook-w1', '--kubeconfig', operator)).code).toBe(0);
  await puppets.says('webhook-w1', 'Completed');
  await puppets.says('webhook-w2', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(keys().size).toBe(3);
  expect(await leader.stop('SIGTERM')).toBe(0);
});

const ADDRESS = 'must be a URL that begins with https:// and contains no credentials';

test.each<[string, object, string]>([
  ['without TLS', { webhook: { url: 'http://a.example', secretName: 's' } }, ADDRESS],
  ['with a password', { webhook: { url: 'https://me:x@a.example', secretName: 's' } }, ADDRESS],
  ['without a Secret', { webhook: { url: 'https://a.example' } }, 'secretName: Required value'],
  ['that is neither', {}, 'must have either job or webhook'],
  [
    'that is also a Job',
    {
      webhook: { url: 'https://a.example', secretName: 's' },
      job: { namespace: 'n', template: { spec: { containers: [{ name: 'c', image: 'i' }] } } },
    },
    'must have either job or webhook',
  ],
])('kubectl apply refuses a webhook %s', async (_what, odd, expected) => {
  const manifest = JSON.stringify({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'webhook-bad' },
    spec: { hooks: [{ name: 'tell', when: 'BeforeDrain', timeout: '1m', ...odd }] },
  });
  const { ok, stderr } = await kubectlAs('admin', ['apply', '-f', '-'], manifest);
  expect(ok).toBe(false);
  expect(stderr).toContain(expected);
});
