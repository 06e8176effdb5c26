/** Tests `refit notify test` on an API server in memory, with receivers that take the message, refuse it, or do not exist. */

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { upgradePolicies } from '../../api/kinds.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { namespaces, secrets } from '../../kube/resources.ts';
import { describeProblem } from '../../kube/status-error.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { systemClock } from '../../util/clock.ts';
import { plainOutput } from '../output.ts';
import { testReceiver } from './test-receiver.ts';

const received: unknown[] = [];
let answer = 200;
let sendTo: (named: string) => Promise<string>;

beforeAll(async () => {
  const hook = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    request.on('end', () => {
      received.push(JSON.parse(text));
      response.writeHead(answer).end();
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/hook`;
  const folder = await mkdtemp(join(tmpdir(), 'refit-notify-'));
  const plane = await startSandboxPlane(folder);
  const kubeconfig = await plane.kubeconfig('admin');
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  const policy = (name: string, notify: object[]) => ({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name },
    spec: { notify },
  });
  const hookNamed = (name: string, more: object) => ({
    name,
    type: 'Webhook',
    events: ['Failed'],
    ...more,
  });
  await client.create(namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'refit-system' },
  });
  const data = { url: Buffer.from(url).toString('base64') };
  const metadata = { name: 'chat', namespace: 'refit-system' };
  await client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  const secretRef = { name: 'chat', key: 'url' };
  for (const each of [
    policy('calm', [hookNamed('ops', { url }), hookNamed('hidden', { secretRef })]),
    policy('careful', [
      hookNamed('ops', { url }),
      hookNamed('gone', { secretRef: { name: 'no', key: 'x' } }),
    ]),
  ])
    await client.create(upgradePolicies, each as never);
  const abort = new AbortController().signal;
  sendTo = async (named) => {
    let printed = '';
    const write = (piece: string): void => {
      printed += piece;
    };
    const parts = { clock: systemClock, output: { ...plainOutput, write }, abort };
    return await testReceiver(named, { kubeconfig }, parts).then(
      () => printed,
      (error: unknown) => describeProblem(error).line,
    );
  };
  return async () => {
    hook.close();
    await plane.stop();
    await rm(folder, { recursive: true });
  };
});

test.each(['hidden', 'calm/ops', 'careful/ops'])(
  'the receiver %s gets a message that names the user and the policy, and that is no event of a plan',
  async (named) => {
    received.length = 0;
    answer = 200;
    const [policy = 'calm', name = policy] = named.includes('/')
      ? named.split('/')
      : ['calm', named];
    expect(await sendTo(named)).toMatch(
      new RegExp(`^The receiver ${name} of UpgradePolicy ${policy} has taken a test message`),
    );
    expect(received).toEqual([
      expect.objectContaining({
        policy,
        notes: [
          expect.objectContaining({
            event: 'Test',
            message: expect.stringMatching(
              new RegExp(`^Test message of Refit: \\S+ has run .* for the receiver ${name} of`),
            ) as string,
          }),
        ],
      }),
    ]);
  },
);

test('a receiver that refuses the message is an error with its answer', async () => {
  answer = 404;
  expect(await sendTo('calm/ops')).toMatch(
    /^REFIT_CONTROL: the receiver ops of UpgradePolicy calm did not take the message: it answered 404/,
  );
});

test('a receiver whose Secret does not exist is an error that names the Secret', async () => {
  expect(await sendTo('gone')).toMatch(
    /^REFIT_CONTROL: the receiver gone of UpgradePolicy careful did not take the message: Secret refit-system\/no/,
  );
});

test.each([
  [
    'ops',
    'several policies have a receiver ops: calm/ops, careful/ops (name one, such as refit notify test calm/ops)',
  ],
  [
    'pager',
    'no UpgradePolicy has a receiver pager; there are calm/hidden, calm/ops, careful/gone, careful/ops',
  ],
])('the name %s is refused with the names that exist', async (named, message) => {
  expect(await sendTo(named)).toContain(message);
});
