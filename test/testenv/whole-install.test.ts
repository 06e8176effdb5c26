/**
 * Tests the whole installation: installs all of Refit as users do, upgrades a cluster, and removes Refit. The chart is
 * on the real API server, the one-file binary runs with the ServiceAccount of the chart, and `refit install agent`
 * starts agents on two hosts with real systemd.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, link, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import { createNode, deleteObjects, examplePlan } from '../../sandbox/cluster/objects.ts';
import { type DownloadServer, startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import { buildStandIn } from '../../sandbox/hosts/stand-in.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { bootAsHost, whyNoSystemd } from '../agent/systemd/jail.ts';
import { leftOut } from '../support/left-out.ts';
import { buildOneFile } from '../support/one-file.ts';
import { askedBy, writeAccountKubeconfig } from './account.ts';
import { buildTool } from './build-tool.ts';
import { apply, controlPlane, kubeconfigFor, kubectlAs, restoreRoles } from './control-plane.ts';
import { expectHelm } from './helm.ts';
import { CREDENTIALS, FINISH, type HostJob, type SeenHost } from './whole-install/seen.ts';

const HOST = join(import.meta.dirname, 'whole-install', 'inside.ts');
const NAMESPACE = 'refit-system';
const FROM = 'v1.36.3+k0s.0';
const TO = 'v1.36.3+k0s.2';
const CONTROLLER = 'whole-controller';
const WORKER = 'whole-worker';
const MINUTES = 60_000;
const why = await whyNoSystemd();

if (why === undefined) describe('from nothing to an upgrade and back', suite);
else leftOut('from nothing to an upgrade and back', why);

let directory = '';
let binary = '';
let downloads: DownloadServer;
let client: ReturnType<typeof createClient>;
const controllers: ChildProcess[] = [];
let said = '';
let apiPort = 0;
const hosts = new Map<string, Promise<SeenHost>>();

/** Runs the binary on the operator's machine. */
async function refit(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = spawnSync(
    binary,
    [...args, '--kubeconfig', await kubeconfigFor('admin')],
    {
      encoding: 'utf8',
      env: { PATH: '/nonexistent' },
    },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

async function helmed(...args: readonly string[]): Promise<void> {
  const flags = ['--namespace', NAMESPACE, '--kubeconfig', await kubeconfigFor('admin')];
  await expectHelm(directory, [...args, ...flags]);
}

const exchangeOf = (host: string): string => join(directory, host);

/** Boots a host. `furnish` puts credentials into the exchange directory of the host. */
async function boot(job: HostJob, furnish: (exchange: string) => Promise<void>): Promise<void> {
  const exchange = exchangeOf(job.name);
  await mkdir(exchange);
  await writeFile(join(exchange, 'host.json'), JSON.stringify(job));
  await link(binary, join(exchange, 'refit'));
  await copyFile(await kubeconfigFor('admin'), join(exchange, 'admin.conf'));
  await furnish(exchange);
  const booted = bootAsHost([process.execPath, HOST, exchange], exchange, 170_000);
  hosts.set(
    job.name,
    booted.then(async ({ status, output }) => {
      expect(status, output).toBe(0);
      return JSON.parse(await readFile(join(exchange, 'seen.json'), 'utf8')) as SeenHost;
    }),
  );
}

/**
 * Writes the output of `refit credentials` in the form that other tools use: certificates and key are in separate files
 * in the same folder.
 */
async function writeCredentials(exchange: string): Promise<void> {
  const folder = join(exchange, CREDENTIALS);
  await mkdir(folder);
  let config = await refit('credentials', 'controlnode', CONTROLLER);
  for (const [, field = '', text = ''] of config.matchAll(/([\w-]+)-data: (\S+)/g)) {
    await writeFile(join(folder, `${field}.pem`), Buffer.from(text, 'base64'), { mode: 0o600 });
    config = config.replace(`${field}-data: ${text}`, `${field}: ${field}.pem`);
  }
  await writeFile(join(folder, 'agent.conf'), config, { mode: 0o600 });
}

/** Starts the containers of the chart's Deployment as processes of this machine. */
async function startControllers(): Promise<void> {
  const wanted = ['get', 'deployment', 'refit-controller', '-n', NAMESPACE, '-o', 'json'];
  const { spec } = JSON.parse((await kubectlAs('admin', wanted)).stdout) as { spec: Spec };
  const kubeconfig = join(directory, 'refit-controller.yaml');
  await writeAccountKubeconfig(kubeconfig, NAMESPACE, 'refit-controller');
  const ports = await Promise.all(Array.from({ length: spec.replicas }, freePort));
  for (const port of ports) {
    const args = spec.template.spec.containers[0].args.map((it) =>
      it.replace('=:8080', `=127.0.0.1:${port}`),
    );
    const own = [
      '--kubeconfig',
      kubeconfig,
      '--api-port',
      String(apiPort),
      '--lease-duration',
      '3s',
    ];
    const child = spawn(binary, [...args, ...own], { env: { PATH: '/nonexistent' } });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        said += String(chunk);
      });
    controllers.push(child);
  }
  // The standby controller must be ready as well. Otherwise the Deployment would never be available.
  const ready = async (): Promise<boolean[]> => await Promise.all(ports.map(isReady));
  await expect.poll(ready, { timeout: MINUTES, interval: 250 }).toEqual([true, true]);
}

interface Spec {
  readonly replicas: number;
  readonly template: {
    readonly spec: { readonly containers: readonly [{ readonly args: readonly string[] }] };
  };
}

async function isReady(port: number): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok === true;
}

async function prepare(): Promise<void> {
  directory = await mkdtemp(join(tmpdir(), 'refit-whole-'));
  await buildTool('helm');
  binary = await buildOneFile(directory);
  apiPort = await freePort();
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  const payload = join(directory, 'payload');
  await buildStandIn({ version: TO, path: payload });
  downloads = await startDownloadServer({ files: { '/k0s': payload } });
  // Removes these roles, so that the cluster has nothing of Refit yet.
  const kept = ['Namespace', 'ServiceAccount'];
  const roles = parseAllDocuments(await readFile('deploy/rbac.yaml', 'utf8'));
  const removed = roles.filter((document) => !kept.includes(String(document.get('kind')))).join('');
  await kubectlAs('admin', ['delete', '-f', '-'], removed);
  await apply(await readFile('deploy/chart/manifests/base/namespace.yaml', 'utf8'));
}

function suite(): void {
  beforeAll(prepare, 15 * MINUTES);
  afterAll(async () => {
    for (const name of hosts.keys()) await writeFile(join(exchangeOf(name), FINISH), '');
    await Promise.allSettled(hosts.values());
    for (const each of controllers) each.kill('SIGKILL');
    await downloads.stop();
    for (const name of [CONTROLLER, WORKER]) await deleteObjects(client, name);
    client.close();
    await kubectlAs('admin', ['delete', 'namespace', NAMESPACE]);
    await restoreRoles();
    await rm(directory, { recursive: true });
  });

  test('the chart is installed', async () => {
    await helmed('install', 'refit', 'deploy/chart', '--set=nodeSelector.pool=none');
  });

  test('the agents are installed on a controller and on a worker', async () => {
    const listen = `${controllerAddress(1)}:${apiPort}`;
    const apiServer = { listen, upstream: new URL(controlPlane().url).host };
    await boot({ name: CONTROLLER, version: FROM, apiServer }, writeCredentials);
    await createNode(client, WORKER, { pool: WORKER });
    const kubelet = await kubeconfigFor({ node: WORKER });
    await boot({ name: WORKER, version: FROM }, async (exchange) => {
      await copyFile(kubelet, join(exchange, 'kubelet.conf'));
    });
    const registered = async (): Promise<string[]> =>
      (await client.list(controlNodes)).items.map(({ metadata }) => metadata.name);
    await expect
      .poll(async () => await Promise.race([registered(), ...hosts.values()]), {
        timeout: 2 * MINUTES,
        interval: 200,
      })
      .toEqual([CONTROLLER]);
  });

  test('the Refit controller upgrades a controller and a worker with only the rights of its ServiceAccount', async () => {
    await startControllers();
    const url = `${downloads.url}/k0s`;
    const sha256 = downloads.sha256('/k0s');
    const version = TO;
    const targets = {
      controllers: [CONTROLLER],
      workerSelector: { labels: `pool=${WORKER}` },
      concurrent: 1,
    };
    await client.create(plans, examplePlan({ id: 'whole', version, url, sha256, ...targets }));
    const stateOf = async () => (await client.get(plans, 'autopilot')).status?.state;
    await expect
      .poll(async () => await Promise.race([stateOf(), ...hosts.values()]), {
        timeout: 2 * MINUTES,
        interval: 200,
      })
      .toBe('Completed');
    expect(await refit('status')).toContain('done 2/2');
    const asked = await askedBy(NAMESPACE, 'refit-controller');
    expect(asked.length).toBeGreaterThan(10);
    // Automatic updates are an option of the chart. Without it, the API server refuses these requests.
    const refused = asked.filter(
      (line) => line.startsWith('forbid') && !line.includes('/updateconfigs?'),
    );
    expect(refused).toEqual([]);
  });

  test('removal of the agents leaves no file of Refit on the hosts and does not change k0s', async () => {
    for (const name of hosts.keys()) await writeFile(join(exchangeOf(name), FINISH), '');
    for (const [name, host] of hosts) {
      const { error, installed, removed, left, version } = await host;
      expect(error).toBeUndefined();
      const credentials = `wrote /etc/refit/agent.kubeconfig: a copy of ${CREDENTIALS}/agent.conf\n`;
      expect(installed.includes(credentials)).toBe(name === CONTROLLER);
      expect(removed).toContain('removed systemd unit refit-agent.service\n');
      expect({ left, version }).toEqual({ left: [], version: TO });
    }
  });

  test('the chart goes, and the controllers end; then only definitions are left', async () => {
    for (const each of controllers) {
      each.kill('SIGTERM');
      if (each.exitCode === null) await once(each, 'exit');
      expect(each.exitCode, said).toBe(0);
    }
    await client.delete(plans, 'autopilot');
    await helmed('uninstall', 'refit', '--wait');
    const kinds =
      'deployments,services,serviceaccounts,networkpolicies,poddisruptionbudgets,roles,rolebindings,clusterroles,clusterrolebindings';
    const left = await kubectlAs('admin', [
      'get',
      kinds,
      '-A',
      '-o',
      'name',
      '-l',
      'app.kubernetes.io/instance=refit',
    ]);
    expect(left.stdout).toBe('');
  });
}
