/** Tests health checks on a real API server, with real Prometheus and Alertmanager, and with the controller and the commands of Refit. */
import { readFile } from 'node:fs/promises';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
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

const NAMESPACE = 'refit-system';

beforeAll(async () => {
  await installKinds();
});

/** Starts the common parts of every scene: an administrator's client, a policy with these checks, and a leader. */
async function begin(name: string, spec: UpgradePolicySpec) {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  await ifNew(admin.create(namespaces, { metadata: { name: NAMESPACE } }));
  await admin.create(upgradePolicies, buildUpgradePolicy(name, spec));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
  return admin;
}

async function leaderOf(): Promise<RefitProcess> {
  return new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));
}

async function tell(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await runRefit(
    command,
    ...args,
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  );
  return stdout.join('\n');
}

/** Waits until `refit why` says this about a node. */
async function untilTold(node: string, ...sentences: readonly string[]): Promise<void> {
  await vi.waitFor(async () => {
    const told = await tell('why', node);
    for (const sentence of sentences) expect(told).toContain(sentence);
  }, PATIENCE);
}

async function stateOf(admin: KubeClient, name: string): Promise<string | undefined> {
  const { items } = await admin.listAll(nodeRollouts);
  const checks = items.flatMap(({ status }) => status?.checks ?? []);
  return checks.find((check) => check.name === name)?.state;
}

const LABELS = { severity: 'critical' };
/** Refit runs a check every 15 s, and these tests wait for many results. */
const PATIENT = { timeout: 420_000 };

/** Waits until a node gets the signal to upgrade. */
async function untilStarted(puppets: Puppets, name: string): Promise<void> {
  try {
    await vi.waitFor(async () => expect(await puppets.signal(name)).toBeDefined(), PATIENCE);
  } catch (cause) {
    throw new Error(`${name} was not told to upgrade: ${await tell('why', name)}`, { cause });
  }
}

async function untilChecked(
  admin: KubeClient,
  name: string,
  state: string | undefined,
): Promise<void> {
  await vi.waitFor(async () => expect(await stateOf(admin, name)).toBe(state), PATIENCE);
}

test(
  'nodes wait while a metric is out of bounds, and while an alert fires',
  PATIENT,
  async (context) => {
    if (MISSING !== undefined) context.skip(MISSING);
    await using application = await Application.start();
    Object.assign(application.gauges, { test_errors: 0, test_broken: 0 });
    await using monitoring = await startMonitoring(application);
    const { prometheus, alertmanager } = monitoring;
    const admin = await begin('health', {
      health: {
        metrics: [{ name: 'error-rate', url: prometheus, query: 'test_errors', max: '0.01' }],
        alerts: [
          { name: 'firing', source: 'Prometheus', url: prometheus, labels: LABELS },
          { name: 'notified', source: 'Alertmanager', url: alertmanager, labels: LABELS },
        ],
      },
    });
    await using puppets = await Puppets.create(admin, 'health-w1', 'health-w2', 'health-w3');
    await using leader = await leaderOf();
    await puppets.plan(1);

    await untilStarted(puppets, 'health-w1');
    application.gauges['test_errors'] = 0.07;
    await untilChecked(admin, 'error-rate', 'Failing');
    await puppets.says('health-w1', 'Completed');
    await untilTold(
      'health-w1',
      'the health check error-rate of UpgradePolicy health fails',
      'the value is 0.07, above max 0.01',
    );
    expect(await tell('status')).toMatch(/error-rate fails for .*: the value is 0\.07, above max/);
    expect(await puppets.signal('health-w2')).toBeUndefined();
    application.gauges['test_errors'] = 0.001;
    await untilStarted(puppets, 'health-w2');

    application.gauges['test_broken'] = 1;
    for (const name of ['firing', 'notified']) await untilChecked(admin, name, 'Failing');
    await puppets.says('health-w2', 'Completed');
    await untilTold('health-w2', 'firing fails', 'notified fails', 'an alert fires: Broken with');
    expect(await puppets.signal('health-w3')).toBeUndefined();
    application.gauges['test_broken'] = 0;
    await untilStarted(puppets, 'health-w3');
    await puppets.says('health-w3', 'Completed');
    expect((await puppets.end()).state).toBe('Completed');
    await untilChecked(admin, 'error-rate', undefined);
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);

test(
  'nodes wait while Prometheus is gone, unless the policy ignores that',
  PATIENT,
  async (context) => {
    if (MISSING !== undefined) context.skip(MISSING);
    await using application = await Application.start();
    application.gauges['test_errors'] = 0;
    await using monitoring = await startMonitoring(application);
    const url = monitoring.prometheus;
    const admin = await begin('health', {
      health: { metrics: [{ name: 'error-rate', url, query: 'test_errors', max: '0.01' }] },
    });
    await using puppets = await Puppets.create(admin, 'health-w1', 'health-w2');
    await using leader = await leaderOf();
    await puppets.plan(1);
    await untilStarted(puppets, 'health-w1');
    await monitoring.endPrometheus();
    await untilChecked(admin, 'error-rate', 'Unknown');
    await puppets.says('health-w1', 'Completed');
    await untilTold(
      'health-w1',
      'the health check error-rate of UpgradePolicy health got no answer',
    );
    expect(await puppets.signal('health-w2')).toBeUndefined();
    const ignoring = { spec: { health: { onUnknown: 'Ignore' } } };
    await admin.patch(upgradePolicies, 'health', ignoring, { type: 'merge' });
    await untilStarted(puppets, 'health-w2');
    await puppets.says('health-w2', 'Completed');
    expect((await puppets.end()).state).toBe('Completed');
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);

test('a check reads its Secret with the documented right only, and fails the node if it fails for the whole deadline', async () => {
  await using application = await Application.start();
  application.token = 'very-secret';
  const admin = await begin('health', {
    deadlines: { ready: '5s' },
    health: { http: [{ name: 'web', url: `${application.url}/`, secretName: 'refit-health' }] },
  });
  await using puppets = await Puppets.create(admin, 'health-w1', 'health-w2');
  await using leader = await leaderOf();
  await puppets.plan(1);
  const title = `Secret ${NAMESPACE}/refit-health`;
  await untilTold('health-w1', `the leader has no right to get ${title}`);
  await apply(await readFile('deploy/rbac-health.yaml', 'utf8'));
  onTestFinished(async () => {
    await kubectlAs('admin', ['delete', '-f', 'deploy/rbac-health.yaml']);
  });
  await untilTold('health-w1', `${title} does not exist`);
  const metadata = { name: 'refit-health', namespace: NAMESPACE };
  const data = { token: btoa(application.token) };
  await admin.create(secrets, { metadata, data }, { namespace: NAMESPACE });
  onTestFinished(async () => await admin.delete(secrets, metadata.name, { namespace: NAMESPACE }));
  await vi.waitFor(async () => expect(await puppets.signal('health-w1')).toBeDefined(), PATIENCE);

  application.status = 503;
  await puppets.says('health-w1', 'Completed');
  const { description } = await puppets.end();
  expect(description).toContain('web of UpgradePolicy health fails');
  expect(description).toContain('answered 503 Service Unavailable');
  expect(await puppets.signal('health-w2')).toBeUndefined();
  expect(leader.stderr.join('\n')).not.toContain('very-secret');
  expect(await leader.stop('SIGTERM')).toBe(0);
});
