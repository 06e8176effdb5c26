/**
 * Runs inside a jail with real systemd: starts a real control plane and a stand-in for a k0s controller, and installs
 * the agent on the same host. Writes its observations as one JSON object.
 *   node inside.ts EXCHANGE
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { buildStandIn } from '../../../sandbox/hosts/stand-in.ts';
import { askStatus } from '../../../src/agent/service/status-socket.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { clusterScoped } from '../../../src/kube/resources.ts';
import { isUnauthorized } from '../../../src/kube/status-error.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { decodeSignal, encodeSignal } from '../../../src/signal/annotations.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { rfc3339, sleep, systemClock } from '../../../src/util/clock.ts';
import { applyManifest } from '../../../tools/controlplane/apply.ts';
import { startControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { kubectl } from '../../../tools/controlplane/kubectl.ts';
import type { SeenController } from './seen.ts';

const [exchange = ''] = process.argv.slice(2);
const DEPLOY = join(import.meta.dirname, '..', '..', '..', 'deploy');
const K0S = '/usr/local/bin/k0s';
const SOCKET = '/run/k0s/status.sock';
/**
 * The FIFO that is the standard input of the stand-in for k0s. The stand-in ends when the process that keeps this FIFO
 * open ends.
 */
const STDIN = '/run/k0s-stdin';
const ADMIN = '/var/lib/k0s/pki/admin.conf';
const AGENT_KUBECONFIG = '/etc/refit/agent.kubeconfig';
/** The lifetime of certificates. The agent gets the next certificate after four fifths of it. */
const LIFE = '15s';
const selfReviews = clusterScoped(
  'authentication.k8s.io/v1',
  'SelfSubjectReview',
  'selfsubjectreviews',
);
const PLACES = [
  '/etc/systemd/system/refit-agent.service',
  '/var/lib/refit',
  '/run/refit',
  '/etc/refit',
  '/usr/local/bin/refit',
];

/** The name of the ControlNode. The kubelet does not know this name. */
const NAME = 'edge-1';

const UNIT = `[Service]
ExecStart=${K0S} controller --enable-worker --disable-components=autopilot --status-socket ${SOCKET}
Environment=AUTOPILOT_HOSTNAME=${NAME}
StandardInput=file:${STDIN}
`;

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
  const { stdout, stderr } = spawnSync(join(exchange, 'refit'), args, { encoding: 'utf8' });
  return stdout + stderr;
}

async function startK0s(): Promise<void> {
  await buildStandIn({ version: 'v1.36.3+k0s.0', path: K0S });
  await mkdir('/run/k0s');
  execFileSync('mkfifo', [STDIN]);
  // This process keeps the FIFO open for reading and writing until it ends, so the standard input of k0s does not end
  // earlier.
  openSync(STDIN, 'r+');
  await writeFile('/etc/systemd/system/k0scontroller.service', UNIT);
  execFileSync('systemctl', ['daemon-reload']);
  execFileSync('systemctl', ['start', 'k0scontroller.service']);
  await until('k0s', async () => await askStatus(SOCKET, 1_000).catch(() => undefined));
}

/** Returns the name of the Node for which the credentials are requested. */
const nodeOf = (credentials: string): string =>
  /--node\W+([\w.-]+)/.exec(credentials)?.[1] ?? 'none';

const agentPid = (): string =>
  execFileSync('systemctl', ['show', '--property=MainPID', '--value', 'refit-agent.service'], {
    encoding: 'utf8',
  });

/** False once the API server refuses the certificate. */
async function isAccepted(path: string): Promise<boolean> {
  using client = createClient(await loadClusterConfig({ path }));
  try {
    await client.create(selfReviews, { metadata: { name: '' } });
    return true;
  } catch (error) {
    if (isUnauthorized(error)) return false;
    throw error;
  }
}

/** Resolves once the API server refuses every certificate that it signed before this call. */
async function untilExpired(name: string): Promise<void> {
  const path = join(exchange, 'expiring.conf');
  await writeFile(path, refit('credentials', 'controlnode', name, '--kubeconfig', ADMIN));
  if (!(await isAccepted(path))) throw new Error('the API server refuses a new certificate');
  await until('its end', async () => ((await isAccepted(path)) ? undefined : true));
}

async function run(): Promise<SeenController> {
  await using started = new AsyncDisposableStack();
  const plane = await startControlPlane({
    components: ['kube-controller-manager'],
    certificateLife: LIFE,
  });
  started.defer(async () => await plane.stop());
  const admin = await plane.kubeconfig('admin');
  const ask = async (kubeconfig: string, ...args: string[]): Promise<string> =>
    (await kubectl(plane.kubectl, kubeconfig, args)).stdout.trim();
  for (const kind of ['plans', 'controlnodes'])
    await applyManifest(
      admin,
      await readFile(join(DEPLOY, 'crds', `autopilot.k0sproject.io_${kind}.yaml`), 'utf8'),
    );
  // The jail has a copy of this directory of the machine, which may contain files of other tests.
  await rm('/var/lib/refit', { recursive: true, force: true });
  await mkdir('/var/lib/k0s/pki', { recursive: true });
  await copyFile(admin, ADMIN);
  await startK0s();
  const installed = refit('install', 'agent');
  using client = createClient(await loadClusterConfig({ path: admin }));
  const { metadata: registered } = await until(
    `the ControlNode; install said ${installed}`,
    async () => (await client.list(controlNodes)).items[0],
  );
  const controlNode = await ask(admin, 'get', 'controlnodes', '-o', 'name');
  const user = await ask(
    AGENT_KUBECONFIG,
    'auth',
    'whoami',
    '-o',
    'jsonpath={.status.userInfo.username}',
  );
  const credentials = await readFile(AGENT_KUBECONFIG, 'utf8');
  const pid = agentPid();
  await untilExpired(NAME);
  // The agent refuses this signal, because nothing verifies the download. It has to write the refusal as the status of
  // the signal.
  const command = {
    id: 0,
    kind: 'k0supdate',
    url: 'http://127.0.0.1:9/k0s',
    version: 'v1.36.4+k0s.0',
  } as const;
  const annotations = encodeSignal({ planId: 'plan', created: rfc3339(Date.now()), command });
  await client.patch(
    controlNodes,
    registered.name,
    { metadata: { annotations } },
    { type: 'merge' },
  );
  const answered = await until('an answer to the signal', async () => {
    const { metadata } = await client.get(controlNodes, registered.name);
    return decodeSignal(metadata.annotations)?.status?.status;
  });
  const isSame = agentPid() === pid;
  await writeFile('/etc/refit/agent.yaml', 'soak 1s\n');
  const removed = refit('uninstall', 'agent');
  const commands = removed.split('\n').filter((line) => line.startsWith('kubectl '));
  for (const line of commands) await ask(admin, ...line.split(' ').slice(1));
  const kinds = 'clusterroles,clusterrolebindings,roles,rolebindings,controlnodes';
  const objects = (await ask(admin, 'get', kinds, '-A', '-o', 'name')).split('\n');
  const leftInCluster = objects.filter((each) => each.includes(NAME));
  const removedAgain = refit('uninstall', 'agent');
  return {
    name: NAME,
    nodes: [nodeOf(credentials), hostname().toLowerCase()],
    answered,
    isSame,
    installed,
    controlNode,
    user,
    removed,
    removedAgain,
    leftInCluster,
    left: PLACES.filter((path) => existsSync(path)),
  };
}

const seen = await run().catch((error: unknown) => ({
  error: error instanceof Error ? error.stack : String(error),
}));
await writeFile(join(exchange, 'seen.json'), JSON.stringify(seen));
process.exit(0);
