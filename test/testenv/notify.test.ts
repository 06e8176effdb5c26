/**
 * Tests the receivers of a policy on a real API server: what each receiver gets, and that it gets this only once, also
 * after a leader was killed.
 */
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { namespaces, secrets } from '../../src/kube/resources.ts';
import { ifNew } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { type SeenRequest, startStubServer } from '../faults/stub-server.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';

const NAMESPACE = 'refit-system';
/** The Secret that `deploy/rbac-notify.yaml` names. */
const NAME = 'refit-notify';
const RIGHTS = 'deploy/rbac-notify.yaml';
/** A part of each address. It must not be readable anywhere except in the Secret. */
const TOKEN = 'T0K3N-0F-THESE-TESTS';
const KEY = 'a key of these tests only';
const SIGNING = 'signing-key';

type Receivers = NonNullable<UpgradePolicySpec['notify']>;

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await ifNew(admin.create(namespaces, { metadata: { name: NAMESPACE } }));
  await apply(await readFile(RIGHTS, 'utf8'));
});
afterAll(async () => {
  // Deletes the roles. If they stayed, a later test file could delete them together with the namespace, and would then
  // fail because roles are missing.
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  admin.close();
});

/** Creates the Secret with the signing key and, for each of these keys, an address on this port. */
async function useSecret(port: number, keys: readonly string[]): Promise<void> {
  const address = (key: string): string => `http://127.0.0.1:${port}/${key}/${TOKEN}`;
  const data = Object.fromEntries(
    keys.map((key) => [key, btoa(address(key))]).concat([[SIGNING, btoa(KEY)]]),
  );
  const metadata = { name: NAME, namespace: NAMESPACE };
  await admin.create(secrets, { metadata, data }, { namespace: NAMESPACE });
  onTestFinished(async () => await admin.delete(secrets, NAME, { namespace: NAMESPACE }));
}

async function usePolicy(name: string, notify: Receivers): Promise<void> {
  const plans: UpgradePolicySpec['plans'] = [{ dialect: 'autopilot' }];
  await admin.create(upgradePolicies, buildUpgradePolicy(name, { plans, notify }));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

/** Returns everything that a user of the cluster can read about upgrades. */
async function shown(): Promise<string> {
  const kinds = 'events,noderollouts.upgrade.refit.dev,plans.autopilot.k0sproject.io';
  const { ok, stdout } = await kubectlAs('admin', ['get', kinds, '-A', '-o', 'json']);
  expect(ok).toBe(true);
  return stdout;
}

async function finish(puppets: Puppets): Promise<void> {
  for (const name of puppets.names) await puppets.says(name, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
}

interface Body {
  readonly id: string;
  readonly notes: readonly { readonly event: string }[];
}

function bodyOf({ body }: SeenRequest): Body {
  return JSON.parse(body) as Body;
}

test('each receiver gets each event once, in the format that it publishes', async () => {
  await using server = await startStubServer((_request, response) => void response.end('ok'));
  const to = (key: string): SeenRequest[] =>
    server.requests.filter(({ url }) => url === `/${key}/${TOKEN}`);
  await useSecret(server.port, ['webhook', 'slack']);
  await usePolicy('notify-formats', [
    {
      name: 'records',
      type: 'Webhook',
      secretRef: { name: NAME, key: 'webhook' },
      events: ['Started', 'Done'],
    },
    { name: 'chat', type: 'Slack', secretRef: { name: NAME, key: 'slack' }, events: ['Done'] },
  ]);
  await using puppets = await Puppets.create(admin, 'notify-f1', 'notify-f2');
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.until(() => expect(to('webhook')).toHaveLength(1));
  await finish(puppets);
  await puppets.until(() => expect(server.requests).toHaveLength(3));

  const plan = 'autopilot/autopilot';
  const started = `${plan}: the upgrade to v1.36.3+k0s.2 has started; 2 nodes`;
  const done = `${plan}: the upgrade to v1.36.3+k0s.2 is done; 2 of 2 nodes done`;
  // The name of the cluster is the name of the context.
  const shownDone = `[refit] ${done}\nSee what was done: refit report ${plan}`;
  expect(to('webhook').map(bodyOf)).toMatchObject([
    {
      version: 1,
      cluster: 'refit',
      policy: 'notify-formats',
      notes: [{ event: 'Started', plan, message: started }],
    },
    { version: 1, policy: 'notify-formats', notes: [{ event: 'Done', plan, message: done }] },
  ]);
  expect(to('webhook').map(({ headers }) => headers['idempotency-key'])).toEqual(
    to('webhook').map((request) => bodyOf(request).id),
  );
  expect(new Set(to('webhook').map((request) => bodyOf(request).id)).size).toBe(2);
  expect(to('slack')).toMatchObject([
    { method: 'POST', body: JSON.stringify({ text: shownDone, mrkdwn: false }) },
  ]);
  await puppets.until(async () =>
    expect(await shown()).toContain('"message": "no receiver has refused a message"'),
  );
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('the next leader sends what a killed one could not, with the same id, and nobody shows the address', async () => {
  let status = 503;
  await using server = await startStubServer(
    (_request, response) => void response.writeHead(status).end(`no ${TOKEN}`),
  );
  await useSecret(server.port, ['webhook']);
  const secretRef = { name: NAME, key: 'webhook' };
  const signingKeyRef = { name: NAME, key: SIGNING };
  await usePolicy('notify-killed', [
    { name: 'records', type: 'Webhook', secretRef, signingKeyRef, events: ['Started'] },
  ]);
  await using puppets = await Puppets.create(admin, 'notify-k1', 'notify-k2');
  await using killed = await lead();
  await puppets.plan(1);
  const refused = 'receiver records of UpgradePolicy notify-killed';
  const answer = 'it answered 503 Service Unavailable';
  await puppets.until(async () => {
    const text = await shown();
    expect(text).toContain(`${refused} has not accepted a message yet: ${answer}`);
    expect(text).toContain(`${refused}: ${answer}`);
  });
  expect(server.requests).toHaveLength(1);
  await killed.stop('SIGKILL');

  status = 204;
  await using leader = await lead();
  // No node waits for a receiver.
  await finish(puppets);
  await puppets.until(() => expect(server.requests).toHaveLength(2));
  expect(server.requests.map(({ body }) => body)).toEqual(
    server.requests.map(() => server.requests[0]?.body),
  );
  for (const { headers, body } of server.requests) {
    const signed = `${String(headers['refit-timestamp'])}.${body}`;
    const signature = createHmac('sha256', KEY).update(signed).digest('hex');
    expect(headers['refit-signature']).toBe(`sha256=${signature}`);
  }
  await puppets.until(async () => {
    const { stdout } = await kubectlAs('viewer', [
      'get',
      'noderollouts',
      '-A',
      '-o',
      'jsonpath={.items[*].status.notifications.queue}',
    ]);
    expect(stdout).toBe('[]');
  });
  const logs = [killed, leader].flatMap(({ stdout, stderr }) => [...stdout, ...stderr]);
  expect(logs.join('\n')).toContain(answer);
  const told = [...logs, await shown()].join('\n');
  for (const secret of [TOKEN, KEY, btoa(KEY)]) expect(told).not.toContain(secret);
  expect(await leader.stop('SIGTERM')).toBe(0);
});
