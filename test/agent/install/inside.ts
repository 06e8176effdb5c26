/**
 * Runs inside a jail with a real service manager: installs the agent beside k0s as the guide says, upgrades the node,
 * and removes the agent. Prints the results as one JSON object.
 *   node inside.ts systemd|openrc EXCHANGE [pod]
 * With `pod`, EXCHANGE contains the unpacked image of the pod.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { startDownloadServer } from '../../../sandbox/hosts/download-server.ts';
import { writeWorkerProfile } from '../../../sandbox/hosts/host.ts';
import { buildStandIn } from '../../../sandbox/hosts/stand-in.ts';
import { askStatus } from '../../../src/agent/service/status-socket.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { decodeReport, decodeSignal, encodeSignal } from '../../../src/signal/annotations.ts';
import { encodePrefetch } from '../../../src/signal/prefetch.ts';
import { rfc3339, sleep, systemClock } from '../../../src/util/clock.ts';
import { electSilentLeader } from '../leader-lease.ts';
import { tryForeign } from './foreign.ts';
import { type ByPods, upgradeByPods } from './pods.ts';
import type { Seen } from './seen.ts';

const [manager = '', exchange = '', isPodWanted] = process.argv.slice(2);
const REFIT = join(exchange, 'refit');
const NODE = 'jailed';
const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const BAD = 'v1.36.4+k0s.0';
const NEXT = 'v1.36.5+k0s.0';
const K0S = '/usr/local/bin/k0s';
const SOCKET = '/run/k0s/status.sock';
const KUBELET = '/var/lib/k0s/kubelet.conf';
/** The state directory that agent.yaml names. */
const STATE = '/var/lib/refit-of-this-host';
/** The default state directory, where an earlier agent worked before agent.yaml named another directory. */
const USUAL_STATE = '/var/lib/refit';
const STAGED = '/usr/local/bin/.k0s.refit';
/**
 * The delay is so long that the test would notice a restart that waits for it. With OpenRC, nobody can shorten the
 * delay after the service has ended, as in a roll-back.
 */
const RESPAWN_S = 40;
/** The FIFO that is the standard input of k0s. k0s ends when the last process that holds the FIFO open ends. */
const STDIN = '/run/k0s-stdin';
const TERMINAL = ['Completed', 'FailedDownload', 'Failed'];
const PLACES = [
  '/etc/systemd/system/refit-agent.service',
  '/etc/systemd/system/multi-user.target.wants/refit-agent.service',
  '/etc/init.d/refit-agent',
  '/etc/runlevels/default/refit-agent',
  STATE,
  USUAL_STATE,
  '/run/refit',
  STAGED,
  `${K0S}.previous`,
  '/etc/refit/agent.kubeconfig',
  '/usr/local/bin/refit',
];

const UNIT = `[Service]
ExecStart=${K0S} worker --status-socket ${SOCKET}
StandardInput=file:${STDIN}
Restart=always
RestartSec=${RESPAWN_S}
`;

const SCRIPT = `#!/sbin/openrc-run
supervisor=supervise-daemon
command=${K0S}
command_args="worker --status-socket ${SOCKET}"
respawn_delay=${RESPAWN_S}
supervise_daemon_args="--stdout /dev/null --stderr /dev/null"
`;

async function startK0s(): Promise<void> {
  await writeWorkerProfile('/var/lib/k0s', false);
  if (manager === 'systemd') {
    execFileSync('mkfifo', [STDIN]);
    // This process keeps the FIFO open for reading and writing until it ends, so k0s does not reach the end of the FIFO
    // before.
    openSync(STDIN, 'r+');
    await writeFile('/etc/systemd/system/k0sworker.service', UNIT);
    execFileSync('systemctl', ['daemon-reload']);
    execFileSync('systemctl', ['start', 'k0sworker.service']);
    return;
  }
  await writeFile('/etc/init.d/k0sworker', SCRIPT);
  await chmod('/etc/init.d/k0sworker', 0o755);
  execFileSync('rc-service', ['k0sworker', 'start'], { stdio: 'ignore' });
}

const k0s = async () => await askStatus(SOCKET, 1_000).catch(() => undefined);

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (
    const end = performance.now() + 90_000;
    performance.now() < end;
    await sleep(systemClock, 250)
  ) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error(`never seen: ${what}`);
}

function refit(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(REFIT, args, { encoding: 'utf8' });
  return `${stdout}${stderr}${status === 0 ? '' : `exit code ${status}\n`}`;
}

const agentPid = (): string =>
  spawnSync('pgrep', ['-f', '^/usr/local/bin/refit .*agent --kubeconfig'], {
    encoding: 'utf8',
  }).stdout.trim();

async function configure(url: string): Promise<void> {
  // Leaves the files that an earlier agent leaves.
  await rm(USUAL_STATE, { recursive: true, force: true });
  await mkdir(USUAL_STATE);
  for (const name of ['agent.lock.1', 'journal.json.spare'])
    await writeFile(join(USUAL_STATE, name), '');
  for (const directory of ['/run/k0s', '/var/lib/k0s', '/etc/refit'])
    await mkdir(directory, { recursive: true });
  const lists = {
    clusters: [{ name: 'jail', cluster: { server: url } }],
    users: [{ name: 'anybody', user: {} }],
    contexts: [{ name: 'jail', context: { cluster: 'jail', user: 'anybody' } }],
  };
  await writeFile(
    KUBELET,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'jail', ...lists }),
  );
  // The agent cannot find `binary` by itself, because the process of a script shows only its interpreter. The download
  // server of this test has no TLS.
  await writeFile(
    '/etc/refit/agent.yaml',
    `binary: ${K0S}\nname: ${NODE}\nsoak: 1s\nrestart-timeout: 5s\nstate-dir: ${STATE}\n`,
  );
}

/** Returns the output of install while other users may write to the path. Then sets `mode`. */
async function installWhileOpen(path: string, mode: number): Promise<string> {
  await chmod(path, 0o777);
  const said = refit('install', 'agent');
  await chmod(path, mode);
  return said;
}

interface Jail {
  readonly admin: ReturnType<typeof createClient>;
  readonly downloads: Awaited<ReturnType<typeof startDownloadServer>>;
}

/** Starts everything that the agent needs except k0s: an API server with the Node, and releases to download. */
async function furnish(): Promise<Jail> {
  const server = await startApiServer();
  const files = {
    '/new': join(exchange, 'new'),
    '/bad': join(exchange, 'bad'),
    '/next': join(exchange, 'next'),
  };
  await buildStandIn({ version: OLD, path: K0S });
  await buildStandIn({ version: NEW, path: files['/new'] });
  await buildStandIn({ version: BAD, path: files['/bad'], broken: 'crashes' });
  await buildStandIn({ version: NEXT, path: files['/next'] });
  const downloads = await startDownloadServer({ files });
  await configure(server.url);
  const admin = createClient(await loadClusterConfig({ path: KUBELET }));
  await electSilentLeader(admin);
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
  return { admin, downloads };
}

/** Resolves with the status at the end, and with what the agent reported. */
async function upgradeTo(
  { admin, downloads }: Jail,
  file: string,
  version: string,
  installed: string,
): Promise<[string, string]> {
  const created = rfc3339(Date.now());
  const command = {
    id: 0,
    kind: 'k0supdate',
    url: downloads.url + file,
    version,
    sha256: downloads.sha256(file),
  } as const;
  const annotations = encodeSignal({ planId: version, created, command });
  await admin.patch(nodes, NODE, { metadata: { annotations } }, { type: 'merge' });
  return await until(
    `the end of the upgrade to ${version}; install said ${installed}`,
    async () => {
      const found = (await admin.get(nodes, NODE)).metadata.annotations;
      const status = decodeSignal(found)?.status?.status ?? '';
      return TERMINAL.includes(status)
        ? [status, JSON.stringify(decodeReport(found, created))]
        : undefined;
    },
  );
}

/** Requests a download in advance. Resolves when the agent has finished it. */
async function fetchAhead({ admin, downloads }: Jail): Promise<void> {
  const command = { id: 0, kind: 'k0supdate', url: `${downloads.url}/new`, version: OLD } as const;
  const prefetch = {
    rollout: 'ahead',
    command: { ...command, sha256: downloads.sha256('/new') },
    policy: {},
  };
  await admin.patch(
    nodes,
    NODE,
    { metadata: { annotations: encodePrefetch(prefetch) } },
    { type: 'merge' },
  );
  await until(
    'what is fetched ahead',
    async () => await Promise.resolve(existsSync(`${STAGED}/staged`) || undefined),
  );
}

const statusOf =
  ({ admin }: Jail) =>
  async (): Promise<string | undefined> =>
    decodeSignal((await admin.get(nodes, NODE)).metadata.annotations)?.status?.status;

async function run(): Promise<Seen> {
  const tooEarly = refit('install', 'agent');
  const jail = await furnish();
  await startK0s();
  const first = await until('the first k0s', k0s);

  const distrusted = await installWhileOpen(KUBELET, 0o600);
  const unasked = await installWhileOpen('/run/k0s', 0o755);
  const foreign = await tryForeign(refit, PLACES[manager === 'systemd' ? 0 : 2] ?? '', STATE);
  const installed = refit('install', 'agent');
  const upgrade = async (file: string, version: string): Promise<[string, string]> =>
    await upgradeTo(jail, file, version, installed);
  const began = performance.now();
  const good = await upgrade('/new', NEW);
  const upgradeMs = performance.now() - began;
  const second = await until('the second k0s', k0s);
  const bad = await upgrade('/bad', BAD);
  const third = await until('k0s after the roll-back', k0s);

  const before = agentPid();
  const again = refit('install', 'agent');
  const after = await until('a new agent', async () => {
    const pid = await Promise.resolve(agentPid());
    return pid !== '' && pid !== before ? pid : undefined;
  });
  await fetchAhead(jail);
  const wasThere = [STATE, STAGED, `${K0S}.previous`].filter((path) => existsSync(path));
  const removed = refit('uninstall', 'agent');
  const left = [
    ...PLACES.filter((path) => existsSync(path)),
    ...(agentPid() === '' ? [] : ['its process']),
  ];
  const still = await k0s();
  const byPod: ByPods | undefined =
    isPodWanted === 'pod'
      ? await upgradeByPods(exchange, async () => await upgrade('/next', NEXT), statusOf(jail))
      : undefined;
  const fourth = await k0s();
  // The next install reads again with which options k0s was started.
  await writeWorkerProfile('/var/lib/k0s', true);
  const besideOwn = refit('install', 'agent');
  refit('uninstall', 'agent');
  jail.admin.close();
  return {
    tooEarly,
    installed,
    again: after === before ? '' : again,
    removed,
    wasThere,
    ...(byPod && { byPod }),
    left,
    besideOwn,
    distrusted,
    unasked,
    foreign,
    good,
    bad,
    upgradeMs,
    respawnMs: RESPAWN_S * 1000,
    versions: [
      first.version,
      second.version,
      third.version,
      still?.version ?? 'gone',
      fourth?.version ?? 'gone',
    ],
    config: await readFile('/etc/refit/agent.yaml', 'utf8').catch(() => ''),
  };
}

const seen = await run().catch((error: unknown) => ({
  error: error instanceof Error ? error.stack : String(error),
}));
await writeFile(join(exchange, 'seen.json'), JSON.stringify(seen));
process.exit(0);
