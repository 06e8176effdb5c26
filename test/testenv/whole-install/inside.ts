/**
 * Runs on a host with real systemd: starts a stand-in for k0s and its kubelet, installs the agent, and removes it when the
 * test says so.
 *   node inside.ts EXCHANGE
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reportReady } from '../../../sandbox/cluster/objects.ts';
import { writeWorkerProfile } from '../../../sandbox/hosts/host.ts';
import { buildStandIn } from '../../../sandbox/hosts/stand-in.ts';
import { askStatus } from '../../../src/agent/service/status-socket.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { rfc3339, sleep, systemClock } from '../../../src/util/clock.ts';
import { CREDENTIALS, FINISH, type HostJob, type SeenHost } from './seen.ts';

const [exchange = ''] = process.argv.slice(2);
const { name, version, apiServer } = JSON.parse(
  await readFile(join(exchange, 'host.json'), 'utf8'),
) as HostJob;
const K0S = '/usr/local/bin/k0s';
const SOCKET = '/run/k0s/status.sock';
/**
 * The FIFO that is the standard input of the stand-in for k0s. The stand-in ends when the process that keeps this FIFO
 * open ends.
 */
const STDIN = '/run/k0s-stdin';
/** Clearly shorter than the 50 s after which the controller manager marks a silent node as not Ready. */
const HEARTBEAT_MS = 10_000;
const PLACES = [
  '/etc/systemd/system/refit-agent.service',
  '/etc/systemd/system/multi-user.target.wants/refit-agent.service',
  '/var/lib/refit',
  '/run/refit',
  '/etc/refit/agent.kubeconfig',
  '/usr/local/bin/refit',
  '/usr/local/bin/.k0s.refit',
  `${K0S}.previous`,
];

const k0s = async () => await askStatus(SOCKET, 1_000).catch(() => undefined);

async function startK0s(): Promise<void> {
  await writeWorkerProfile('/var/lib/k0s', false);
  const api = apiServer && `--listen ${apiServer.listen} --upstream ${apiServer.upstream}`;
  const role = api === undefined ? 'worker' : `controller --disable-components=autopilot ${api}`;
  const unit = `[Service]\nExecStart=${K0S} ${role} --status-socket ${SOCKET}\nStandardInput=file:${STDIN}\nRestart=always\n`;
  await buildStandIn({ version, path: K0S });
  execFileSync('mkfifo', [STDIN]);
  // This process keeps the FIFO open for reading and writing until it ends, so the standard input of k0s does not end
  // earlier.
  openSync(STDIN, 'r+');
  await writeFile('/etc/systemd/system/k0s.service', unit);
  execFileSync('systemctl', ['daemon-reload']);
  execFileSync('systemctl', ['start', 'k0s.service']);
  for (
    const end = performance.now() + 60_000;
    (await k0s()) === undefined;
    await sleep(systemClock, 50)
  )
    if (performance.now() > end) throw new Error('k0s never answered');
}

function refit(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(join(exchange, 'refit'), args, {
    encoding: 'utf8',
    cwd: '/root',
  });
  return `${stdout}${stderr}${status === 0 ? '' : `exit code ${status}\n`}`;
}

/** Prepares the files of the host as on a new machine. Files of this machine may come from earlier work. */
async function furnish(): Promise<void> {
  execFileSync('hostname', [name]);
  for (const place of PLACES) await rm(place, { recursive: true, force: true });
  for (const directory of ['/run/k0s', '/var/lib/k0s', '/etc/refit'])
    await mkdir(directory, { recursive: true });
  // Sets `binary` because the process of a script shows only its interpreter. Sets `api-address` because several hosts
  // share the addresses of this machine.
  const address = apiServer === undefined ? '' : `api-address: ${apiServer.listen.split(':')[0]}\n`;
  await writeFile('/etc/refit/agent.yaml', `binary: ${K0S}\nsoak: 1s\n${address}`);
  if (apiServer === undefined)
    await copyFile(join(exchange, 'kubelet.conf'), '/var/lib/k0s/kubelet.conf');
  else await cp(join(exchange, CREDENTIALS), join('/root', CREDENTIALS), { recursive: true });
}

/** Runs until the test has finished. On a worker, reports the kubelet's status after each start and every few seconds. */
async function live(): Promise<void> {
  using client = createClient(await loadClusterConfig({ path: join(exchange, 'admin.conf') }));
  for (let pid = 0, at = 0; !existsSync(join(exchange, FINISH)); await sleep(systemClock, 200)) {
    const answer = await k0s();
    const isTold = answer?.pid === pid && systemClock.monotonic() - at < HEARTBEAT_MS;
    if (apiServer !== undefined || answer === undefined || isTold) continue;
    await reportReady(client, name, answer.version, rfc3339(systemClock.now()));
    pid = answer.pid;
    at = systemClock.monotonic();
  }
}

async function run(): Promise<SeenHost> {
  await furnish();
  await startK0s();
  const given = apiServer === undefined ? [] : ['--credentials', `${CREDENTIALS}/agent.conf`];
  const installed = refit('install', 'agent', ...given);
  if (installed.includes('exit code')) throw new Error(installed);
  await live();
  const removed = refit('uninstall', 'agent');
  const left = PLACES.filter((path) => existsSync(path));
  return { installed, removed, left, version: (await k0s())?.version ?? 'gone' };
}

const seen = await run().catch((error: unknown) => ({
  error: error instanceof Error ? error.stack : String(error),
}));
await writeFile(join(exchange, 'seen.json'), JSON.stringify(seen));
process.exit(0);
