/** Starts a real control plane on loopback, issues credentials for it, and removes it completely. */
import { mkdir, mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { applyManifest } from './apply.ts';
import { pkiPath } from './arguments.ts';
import { ensureComponents } from './build.ts';
import { issueClient, validFrom } from './certs.ts';
import { type ClientComponent, startClients } from './client-components.ts';
import { guardDirectory } from './guard.ts';
import {
  CA_SUBJECT,
  expiredKubeconfigFor,
  kubeconfigFor,
  type Place,
  subjectOf,
  type User,
} from './kubeconfig.ts';
import { writePki } from './pki.ts';
import { type Probe, probeAs } from './probe.ts';
import { type Process, stopAll } from './process.ts';
import { chooseLayout, startApiServer, startEtcd } from './servers.ts';

export interface ControlPlaneOptions {
  /** The components to start in addition to etcd and kube-apiserver. Default: none. */
  readonly components?: readonly ClientComponent[];
  /**
   * Loopback addresses that the server certificate contains in addition to 127.0.0.1. They are for proxies in front of
   * the server.
   */
  readonly addresses?: readonly string[];
  /** Write one line to `auditLog` for each request. */
  readonly audit?: boolean;
  /** How long the certificates that the cluster signs are valid, such as 15s. Default: a year. */
  readonly certificateLife?: string;
  /** Variables that are added to the environment of each process, such as settings of Go's runtime. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Called with one line for each slow step. Default: standard error. */
  readonly log?: (line: string) => void;
  /** Cancels the start. The promise rejects after all that was started has ended. */
  readonly abort?: AbortSignal;
}

export interface ControlPlane extends Place {
  readonly port: number;
  /** In PEM. */
  readonly caCertificate: string;
  readonly auditLog: string | undefined;
  /** Path of a kubeconfig for `user`. */
  kubeconfig(user: User): Promise<string>;
  /** Path of a kubeconfig for the viewer whose client certificate expired an hour ago. */
  expiredKubeconfig(): Promise<string>;
  /** Stops kube-apiserver and starts it again on the same port; resolves when it is ready. */
  restartApiServer(): Promise<void>;
  /** Ends every process and removes the directory. */
  stop(): Promise<void>;
}

const DEPLOY = join(import.meta.dirname, '..', '..', 'deploy');
/** The documented roles except those for a single control node. */
const ROLES = [
  'rbac.yaml',
  'rbac-cattle.yaml',
  'rbac-kubeadm.yaml',
  'rbac-capi.yaml',
  'rbac-updates.yaml',
  'rbac-approver.yaml',
  'rbac-volumes.yaml',
  'rbac-coordinate.yaml',
  'rbac-coordinate-kured.yaml',
];

/** Builds what a later start would have to build first; resolves at once when nothing is missing. */
export async function buildControlPlane({
  components = [],
  log = toStandardError,
  abort,
}: ControlPlaneOptions) {
  const wanted = ['etcd', 'kube-apiserver', 'kubectl', ...components] as const;
  const now = (): number => systemClock.monotonic();
  return await ensureComponents(wanted, { environment: process.env, log, now, abort });
}

/** Resolves when everything is ready and the documented roles exist. Throws REFIT_TESTENV when that fails. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const {
    components = [],
    addresses = [],
    audit = false,
    certificateLife,
    environment,
    abort,
  } = options;
  const binaries = await buildControlPlane(options);

  // If a step below fails, the parts that were started before it end in reverse order.
  await using started = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-controlplane-'));
  const guard = guardDirectory(directory);
  started.defer(async () => await guard.release());
  await furnish(directory, addresses);

  const layout = await chooseLayout(directory);
  const place = {
    url: `https://127.0.0.1:${layout.apiServerPort}`,
    directory,
    kubectl: binaries.kubectl,
  };
  const probe = await adminProbe(directory);
  const running = { layout, probe, environment, abort };
  const etcd = await startEtcd({ ...running, command: binaries.etcd });
  started.defer(async () => await etcd.stop());

  const auditLog = audit ? join(directory, 'logs', 'audit.log') : undefined;
  const start = async (): Promise<Process> =>
    await startApiServer({ ...running, command: binaries['kube-apiserver'] }, auditLog);
  let apiServer = await start();
  started.defer(async () => await apiServer.stop());
  const restartApiServer = async (): Promise<void> => {
    await apiServer.stop();
    apiServer = await start();
  };

  await applyManifest(await kubeconfigFor(place, 'admin'), await documentedRoles());
  const clients = await startClients(components, {
    binaries,
    place,
    probe,
    certificateLife,
    environment,
    abort,
  });
  started.defer(async () => await stopAll(clients));

  const caCertificate = await readFile(pkiPath(directory, 'ca.crt'), 'utf8');
  const everything = started.move();
  return {
    ...place,
    port: layout.apiServerPort,
    caCertificate,
    auditLog,
    restartApiServer,
    kubeconfig: async (user) => await kubeconfigFor(place, user),
    expiredKubeconfig: async () => await expiredKubeconfigFor(place),
    stop: async () => await everything.disposeAsync(),
  };
}

/** Returns the roles that every control plane has from its start, as YAML. */
export async function documentedRoles(): Promise<string> {
  const texts = await Promise.all(
    ROLES.map(async (file) => await readFile(join(DEPLOY, file), 'utf8')),
  );
  return texts.join('---\n');
}

async function furnish(directory: string, addresses: readonly string[]): Promise<void> {
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  await writePki(directory, addresses, systemClock.now());
}

async function adminProbe(directory: string): Promise<Probe> {
  const authority = {
    subject: CA_SUBJECT,
    key: await readFile(pkiPath(directory, 'ca.key'), 'utf8'),
  };
  const admin = issueClient(authority, subjectOf('admin'), validFrom(systemClock.now()));
  const ca = await readFile(pkiPath(directory, 'ca.crt'), 'utf8');
  return probeAs({ ca, cert: admin.certificate, key: admin.key });
}

function toStandardError(line: string): void {
  process.stderr.write(`${line}\n`);
}
