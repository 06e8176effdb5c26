/** Tests the silences of a policy on a real API server and with a real Alertmanager, also after the leader was killed. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { namespaces, secrets } from '../../src/kube/resources.ts';
import { ifNew } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Application, MISSING, startMonitoring } from './prometheus.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const PATIENT = { timeout: 420_000 };
/** An address on which no server listens. */
const NOBODY = 'http://127.0.0.1:1';
const NAMESPACE = 'refit-system';
/** The Secret that `deploy/rbac-silences.yaml` names. */
const NAME = 'refit-silences';
const RIGHTS = 'deploy/rbac-silences.yaml';

beforeAll(async () => {
  await installKinds();
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
});

/** Makes the Secret with the credentials, and gives the leader the right to read it. */
async function makeCredentials(admin: KubeClient): Promise<void> {
  await ifNew(admin.create(namespaces, { metadata: { name: NAMESPACE } }));
  await apply(await readFile(RIGHTS, 'utf8'));
  const data = { token: Buffer.from('for-alertmanager').toString('base64') };
  const metadata = { name: NAME, namespace: NAMESPACE };
  await admin.create(secrets, { metadata, data }, { namespace: NAMESPACE });
  onTestFinished(async () => await admin.delete(secrets, NAME, { namespace: NAMESPACE }));
}

async function begin(name: string, silences: UpgradePolicySpec['silences']): Promise<KubeClient> {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const plans: UpgradePolicySpec['plans'] = [{ dialect: 'autopilot' }];
  await admin.create(
    upgradePolicies,
    buildUpgradePolicy(name, { plans, ...(silences === undefined ? {} : { silences }) }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
  return admin;
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

interface Silence {
  readonly id: string;
  readonly endsAt: string;
  readonly createdBy: string;
  readonly status: { readonly state: string };
  readonly matchers: readonly { readonly name: string; readonly value: string }[];
}

async function silencesOf(alertmanager: string, node: string): Promise<Silence[]> {
  const filter = encodeURIComponent(`node="${node}"`);
  const answer = await fetch(`${alertmanager}/api/v2/silences?filter=${filter}`);
  return (await answer.json()) as Silence[];
}

/** Waits until there is exactly one silence for the node in this state, and returns it. */
async function untilOne(alertmanager: string, node: string, state: string): Promise<Silence> {
  return await vi.waitFor(async () => {
    const [silence, ...others] = await silencesOf(alertmanager, node);
    expect(others).toEqual([]);
    if (silence?.status.state !== state) throw new Error(`${node} is not ${state}`);
    return silence;
  }, PATIENCE);
}

/**
 * Checks that `refit why` prints `said` for the node in progress, and that it does not name the silence for the other
 * node.
 */
async function whySays(said: string, id: string): Promise<void> {
  const viewer = ['--kubeconfig', await kubeconfigFor('viewer')];
  const why = await runRefit('why', 'silence-w1', ...viewer);
  expect(why.stdout.join('\n')).toContain(said);
  const ofOther = await runRefit('why', 'silence-w2', ...viewer);
  expect(ofOther.stdout.join('\n')).toContain('silence-w2');
  expect(ofOther.stdout.join('\n')).not.toContain(id);
}

/** Sends an alert. Returns a function that reports whether the alert is active, which means that it is not silenced. */
async function fire(alertmanager: string, labels: Readonly<Record<string, string>>) {
  const answer = await fetch(`${alertmanager}/api/v2/alerts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([{ labels }]),
  });
  expect(answer.status).toBe(200);
  return async (): Promise<boolean> => {
    const filters = Object.entries(labels).map(([name, value]) => ['filter', `${name}="${value}"`]);
    const query = new URLSearchParams([['silenced', 'false'], ...filters]);
    const active = (await (
      await fetch(`${alertmanager}/api/v2/alerts?${query.toString()}`)
    ).json()) as object[];
    return active.length > 0;
  };
}

test(
  'alerts about a node are silenced while it is in progress, and no others; a killed leader leaves a silence that the next one takes over, or that ends by itself',
  PATIENT,
  async (context) => {
    if (MISSING !== undefined) context.skip(MISSING);
    await using application = await Application.start();
    await using monitoring = await startMonitoring(application);
    const { alertmanager: url } = monitoring;
    const matchers = [
      { name: 'node', value: '{node}' },
      { name: 'alertname', value: 'KubeNode.*|TargetDown', isRegex: true },
    ];
    const admin = await begin('silences', [{ name: 'nodes', url, matchers, duration: '1m' }]);
    await using puppets = await Puppets.create(admin, 'silence-w1', 'silence-w2');
    const first = await lead();
    await puppets.plan(1);

    const made = await untilOne(url, 'silence-w1', 'active');
    expect(made.createdBy).toBe('refit');
    expect(await silencesOf(url, 'silence-w2')).toEqual([]);
    const shown = await vi.waitFor(async () => {
      const { items } = await admin.listAll(nodeRollouts);
      const found = items.flatMap(({ status }) => status?.silences ?? []);
      expect(found).toMatchObject([
        { node: 'silence-w1', silence: 'nodes', server: new URL(url).host, id: made.id },
      ]);
      return found;
    }, PATIENCE);
    await whySays(`by nodes at ${new URL(url).host} (id ${made.id}), which ends `, made.id);
    const notReady = { node: 'silence-w1', alertname: 'KubeNodeNotReady' };
    const isHeard = await fire(url, notReady);
    const isOtherHeard = await fire(url, { ...notReady, node: 'silence-w2' });
    const isDiskHeard = await fire(url, { ...notReady, alertname: 'DiskFull' });
    await puppets.until(async () => expect(await isOtherHeard()).toBe(true));
    expect(await isDiskHeard()).toBe(true);
    expect(await isHeard()).toBe(false);

    await first.stop('SIGKILL');
    const second = await lead();
    // The next leader has found the same silence and has extended it.
    await puppets.until(async () => {
      const { id, endsAt } = await untilOne(url, 'silence-w1', 'active');
      expect(id).toBe(made.id);
      expect(Date.parse(endsAt)).toBeGreaterThan(Date.parse(made.endsAt));
    });
    // Neither the renewal nor the next leader has changed the silences in the NodeRollout.
    const { items } = await admin.listAll(nodeRollouts);
    expect(items.flatMap(({ status }) => status?.silences ?? [])).toEqual(shown);
    await puppets.says('silence-w1', 'Completed');
    await untilOne(url, 'silence-w1', 'expired');
    await puppets.until(async () => expect(await isHeard()).toBe(true));

    await untilOne(url, 'silence-w2', 'active');
    await second.stop('SIGKILL');
    // No leader runs any more, so nobody renews the silence.
    await untilOne(url, 'silence-w2', 'expired');
    await puppets.until(async () => expect(await isOtherHeard()).toBe(true));
    await using third = await lead();
    await puppets.says('silence-w2', 'Completed');
    expect(await puppets.end()).toMatchObject({ state: 'Completed' });
    expect(await third.stop('SIGTERM')).toBe(0);
  },
);

test(
  'without Alertmanager the upgrade goes on, and an Event and a condition say once what is wrong',
  async () => {
    const admin = await begin('silences-dead', [{ name: 'nodes', url: NOBODY, secretName: NAME }]);
    await makeCredentials(admin);
    await using puppets = await Puppets.create(admin, 'unsilenced-w1');
    await using leader = await lead();
    await puppets.plan(1);
    const message = 'silence nodes of UpgradePolicy silences-dead: no answer from 127.0.0.1:1';
    await puppets.until(async () => {
      const { items } = await admin.listAll(nodeRollouts);
      const conditions = items.flatMap(({ status }) => status?.conditions ?? []);
      expect(conditions.filter(({ type }) => type === 'Silenced')).toMatchObject([
        {
          status: 'False',
          reason: 'AlertmanagerUnreachable',
          message: expect.stringContaining(message),
        },
      ]);
    });
    await puppets.says('unsilenced-w1', 'Completed');
    expect(await puppets.end()).toMatchObject({ state: 'Completed' });
    expect(await leader.stop('SIGTERM')).toBe(0);
    const reason = 'reason=AlertmanagerUnreachable';
    const { stdout } = await kubectlAs('admin', [
      'get',
      'events',
      '-A',
      '--field-selector',
      reason,
      '-o',
      'json',
    ]);
    const { items } = JSON.parse(stdout) as {
      readonly items: readonly { readonly note?: string; readonly message?: string }[];
    };
    expect(items.filter((each) => JSON.stringify(each).includes('silences-dead'))).toHaveLength(1);
  },
  PATIENT.timeout,
);
