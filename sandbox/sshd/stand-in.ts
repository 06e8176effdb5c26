/**
 * The programs of the stand-in hosts: kubeadm, kubelet and containerd. In an upgrade they make the same changes to
 * files and to the API as the real programs, in the same order, and take a short time for them. On the host each
 * program is a script that asks this process, because Node.js takes a while to start.
 */

import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse, stringify } from 'yaml';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type ConfigMap, configMaps, nodes, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { messageOf } from '../../src/util/errors.ts';
import { compareVersions, parseVersion } from '../../src/util/version.ts';
import { parseKubeadm } from './kubeadm-command.ts';
import { renewCertificate } from './stand-in-certificates.ts';
import { COMPONENTS } from './stand-in-host.ts';

/** Paths on a host. */
const MANIFESTS = 'etc/kubernetes/manifests';
const TEMPORARY = 'etc/kubernetes/tmp';
const KUBELET_CONFIG = 'var/lib/kubelet/config.yaml';
const KUBELET_FLAGS = 'var/lib/kubelet/kubeadm-flags.env';
/** The time that each component takes to restart, in milliseconds. */
const COMPONENT_MS = 60;
/** Milliseconds between two checks whether a program may continue. */
const HOLD_MS = 20;
const TMPFS = 0x01021994;
const KUBEADM_CONFIG = { namespace: 'kube-system', name: 'kubeadm-config' };

/** Thrown for a simulated power cut: the program prints nothing more. */
class Killed extends Error {}
const CODE_OF_KILLED = 137;

/**
 * Answers the scripts of hosts. Each script sends its root, the program, its version and its arguments, and gets an
 * exit code and a text.
 */
export async function answerHosts(socket: string): Promise<AsyncDisposable> {
  const programs = { kubelet, containerd, kubeadm };
  const server = createServer((request, response) => {
    const answer = async (): Promise<string> => {
      const [root = '', program, version = '', ...args] = (await text(request))
        .split('\n')
        .slice(0, -1);
      return `0 ${await programs[program as keyof typeof programs](root, version, args)}`;
    };
    void answer()
      .catch((error: unknown) =>
        error instanceof Killed ? `${CODE_OF_KILLED} ` : `1 error: ${messageOf(error)}`,
      )
      .then((said) => response.end(said));
  });
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(socket, resolve),
  );
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Resolves with the output of kubeadm, like the functions for the other programs. */
async function kubeadm(root: string, own: string, args: readonly string[]): Promise<string> {
  if (args[0] === 'certs') return renew(root, args);
  const { kind, phase, version: wanted, ignored } = parseKubeadm(args);
  using client = await connect(root);
  const config = await client.get(configMaps, KUBEADM_CONFIG.name, {
    namespace: KUBEADM_CONFIG.namespace,
  });
  const cluster = kubernetesVersionOf(config);
  const isDone = !phase && kind !== 'plan';
  appendFileSync(
    join(root, 'var/log', isDone ? 'kubeadm' : 'kubeadm-preflight'),
    `${args.join(' ')}\n`,
  );
  if (kind === 'plan') return planOf(root, cluster, wanted ?? own);
  const isController = existsSync(join(root, MANIFESTS));
  if (kind === 'apply' && !isController)
    throw new Error(
      'failed to load admin kubeconfig: open /etc/kubernetes/admin.conf: no such file or directory',
    );
  const target = kind === 'apply' ? (wanted ?? own) : cluster;
  checkVersions(root, own, kind, cluster, target);
  if (
    isOnCgroupV1(root) &&
    minorOf(own) >= 35 &&
    !ignored.has('systemverification') &&
    !ignored.has('all')
  )
    throw new Error(
      '[preflight] Some fatal errors occurred:\n\t[ERROR SystemVerification]: cgroups v1 support is deprecated',
    );
  const images = join(root, 'images-missing');
  if (kind === 'apply' && existsSync(images))
    throw new Error(
      `[preflight] Some fatal errors occurred:\n\t[ERROR ImagePull]: failed to pull image ${readFileSync(images, 'utf8')}`,
    );
  if (phase) return '';
  await untilReleased(root, 'kubeadm');
  if (isController) await replaceManifests(root, target, client);
  if (kind === 'apply') await recordVersion(client, config, target);
  await configureKubelet(root, own, client);
  return '[upgrade] SUCCESS!\n';
}

async function configureKubelet(root: string, own: string, client: KubeClient): Promise<void> {
  const backup = join(root, TEMPORARY, `kubeadm-kubelet-config-${stampNow(root)}`);
  const file = join(root, KUBELET_CONFIG);
  mkdirSync(backup, { recursive: true });
  copyFileSync(file, join(backup, 'config.yaml'));
  const { data } = await client.get(configMaps, 'kubelet-config', {
    namespace: KUBEADM_CONFIG.namespace,
  });
  writeFileSync(file, `# written by kubeadm ${own}\n${data?.['kubelet'] ?? ''}`);
  // Only version 1.35 of kubeadm removes this flag.
  if (minorOf(own) === 35)
    writeFileSync(
      join(root, KUBELET_FLAGS),
      flagsOf(root).replace(/ *--pod-infra-container-image=[^ "]*/, ''),
    );
}

/**
 * Renews one certificate, without the API. If the file `hooks/die-without/certs` exists, kubeadm is killed after this
 * certificate.
 */
function renew(root: string, [, verb, name = '', ...rest]: readonly string[]): string {
  if (verb !== 'renew' || name === '' || rest.length > 0)
    throw new Error(`unknown command certs ${verb} ${name}`);
  appendFileSync(join(root, 'var/log/kubeadm'), `certs renew ${name}\n`);
  const said = renewCertificate(root, name);
  dieWhereAsked(root, 'certs');
  return said;
}

/**
 * Returns the plan as `-o json` prints it. A text in `ROOT/plan-fails` is the reason why the plan fails. A text in
 * `ROOT/manual-upgrade` is the group of a configuration that kubeadm cannot convert.
 */
function planOf(root: string, cluster: string, target: string): string {
  if (!existsSync(join(root, MANIFESTS)))
    throw new Error(
      'failed to load admin kubeconfig: open /etc/kubernetes/admin.conf: no such file or directory',
    );
  const fails = join(root, 'plan-fails');
  if (existsSync(fails)) throw new Error(readFileSync(fails, 'utf8'));
  if (cluster === target) return '';
  const step = (name: string): object => ({ name, currentVersion: cluster, newVersion: target });
  const components = COMPONENTS.filter((name) => name !== 'etcd').map(step);
  const manual = join(root, 'manual-upgrade');
  const configVersions = (existsSync(manual) ? [readFileSync(manual, 'utf8')] : []).map(
    (group) => ({
      group,
      currentVersion: 'v1alpha1',
      preferredVersion: 'v1beta1',
      manualUpgradeRequired: true,
    }),
  );
  const availableUpgrades = [{ description: `version ${target}`, components }];
  const plan = {
    kind: 'UpgradePlan',
    apiVersion: 'output.kubeadm.k8s.io/v1alpha3',
    availableUpgrades,
    configVersions,
  };
  return `${JSON.stringify(plan, null, 4)}\n`;
}

function flagsOf(root: string): string {
  const file = join(root, KUBELET_FLAGS);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function minorOf(version: string): number {
  return parseVersion(version)?.minor ?? Number.NaN;
}

function isOlder(version: string, than: string): boolean {
  const a = parseVersion(version);
  const b = parseVersion(than);
  return a !== undefined && b !== undefined && compareVersions(a, b) < 0;
}

/** Reports whether the host has cgroup v1, by the type that `stat -f` prints. */
function isOnCgroupV1(root: string): boolean {
  const path = join(root, 'sys/fs/cgroup');
  return existsSync(path) && statfsSync(path).type === TMPFS;
}

/** Does the preflight checks. They throw before anything is changed. */
function checkVersions(
  root: string,
  own: string,
  kind: 'apply' | 'node',
  cluster: string,
  target: string,
): void {
  const [kubeadm, from, to] = [own, cluster, target].map(minorOf);
  if (kubeadm === undefined || from === undefined || to === undefined) return;
  const specified = `Specified version to upgrade to "${target}"`;
  if (to > from + 1)
    throw new Error(`${specified} is too high; kubeadm can upgrade only 1 minor version at a time`);
  if (kind === 'apply' && isOlder(own, target))
    throw new Error(
      `${specified} is higher than the kubeadm version "${own}". Upgrade kubeadm first`,
    );
  if (kind === 'node' && kubeadm < from)
    throw new Error(`kubeadm ${own} is older than the cluster at ${cluster}`);
  const folder = join(root, MANIFESTS);
  const missing = COMPONENTS.filter(
    (name) => existsSync(folder) && !existsSync(join(folder, `${name}.yaml`)),
  );
  if (missing.length > 0) throw new Error(`[preflight] missing manifests: ${missing.join(', ')}`);
}

/**
 * For each component, moves the current manifest to the backup, then the new manifest to its place. After a kill
 * between the two moves, the manifest is missing.
 */
async function replaceManifests(root: string, target: string, client: KubeClient): Promise<void> {
  const stamp = stampNow(root);
  const temporary = join(root, TEMPORARY);
  const [fresh, backup] = [
    `kubeadm-upgraded-manifests${stamp}`,
    `kubeadm-backup-manifests-${stamp}`,
  ].map((name) => join(temporary, name));
  if (fresh === undefined || backup === undefined) return;
  const copy = join(temporary, `kubeadm-backup-etcd-${stamp}`, 'etcd/member/snap');
  for (const folder of [fresh, backup, copy]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(copy, 'db'), '');
  for (const name of COMPONENTS) {
    const current = join(root, MANIFESTS, `${name}.yaml`);
    const text = readFileSync(current, 'utf8');
    const next = manifestOf(name, text, target);
    if (next === text) continue;
    writeFileSync(join(fresh, `${name}.yaml`), next);
    renameSync(current, join(backup, `${name}.yaml`));
    dieWhereAsked(root, name);
    renameSync(join(fresh, `${name}.yaml`), current);
    await mirror(root, client, name, next);
    await sleep(systemClock, COMPONENT_MS);
  }
  for (const name of readdirSync(temporary)) {
    if (name.startsWith('kubeadm-upgraded-manifests'))
      rmSync(join(temporary, name), { recursive: true });
  }
}

/**
 * Returns the new manifest. The manifest of etcd also changes with each version of kubeadm, even if the image stays the
 * same.
 */
function manifestOf(name: string, text: string, target: string): string {
  if (name === 'etcd') return `# kubeadm ${target}\n${text.replace(/^# kubeadm .*\n/, '')}`;
  return text.replace(/(kube-[a-z-]+):v[\d.]+/, `$1:${target}`);
}

/**
 * Returns the time as kubeadm writes it in names: `2026-11-22-12-00-00`. Never returns a time that is already in a
 * name, because a real kubeadm takes longer than a second.
 */
function stampNow(root: string): string {
  const folder = join(root, TEMPORARY);
  const there = existsSync(folder) ? readdirSync(folder) : [];
  for (let at = Date.now(); ; at += 1000) {
    const stamp = new Date(at).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-');
    if (!there.some((name) => name.endsWith(stamp))) return stamp;
  }
}

/** Updates the pod of the component in the API: sets its image to the image in the manifest, as the kubelet does. */
async function mirror(
  root: string,
  client: KubeClient,
  name: string,
  manifest: string,
): Promise<void> {
  const pod = `${name}-${readFileSync(join(root, 'etc/hostname'), 'utf8')}`;
  const [, image] = /image: (.*)/.exec(manifest) ?? [];
  const options = { namespace: KUBEADM_CONFIG.namespace, type: 'strategic' } as const;
  await client.patch(pods, pod, { spec: { containers: [{ name, image }] } }, options);
}

/** Waits while the file `hooks/hold-PROGRAM` exists. It delays an upgrade or a new kubelet. */
async function untilReleased(root: string, program: string): Promise<void> {
  while (existsSync(join(root, `hooks/hold-${program}`))) await sleep(systemClock, HOLD_MS);
}

/** Simulates a power cut, once, if the test asked for it. */
function dieWhereAsked(root: string, component: string): void {
  const hook = join(root, 'hooks/die-without', component);
  if (!existsSync(hook)) return;
  rmSync(hook);
  throw new Killed();
}

async function recordVersion(client: KubeClient, config: ConfigMap, target: string): Promise<void> {
  const cluster = parse(config.data?.['ClusterConfiguration'] ?? '') as Record<string, unknown>;
  const data = {
    ...config.data,
    ClusterConfiguration: stringify({ ...cluster, kubernetesVersion: target }),
  };
  await client.replace(configMaps, { ...config, data });
}

function kubernetesVersionOf(config: ConfigMap): string {
  const { kubernetesVersion } = parse(config.data?.['ClusterConfiguration'] ?? '') as {
    kubernetesVersion: string;
  };
  return kubernetesVersion;
}

/** Reports the version of a containerd that was restarted, as the kubelet does. */
async function containerd(
  root: string,
  own: string,
  [name = '']: readonly string[],
): Promise<string> {
  using client = await connect(root);
  const nodeInfo = { containerRuntimeVersion: `containerd://${own.slice(1)}` };
  await client.patch(
    nodes,
    name,
    { status: { nodeInfo } },
    { type: 'merge', subresource: 'status' },
  );
  return '';
}

/** Reports what a kubelet reports after its start. */
async function kubelet(root: string, own: string, [name = '']: readonly string[]): Promise<string> {
  const log = (line: string): void => appendFileSync(join(root, 'var/log/kubelet'), `${line}\n`);
  await untilReleased(root, 'kubelet');
  const isStrict = minorOf(own) >= 35;
  if (isStrict && flagsOf(root).includes('--pod-infra-container-image')) {
    log('unknown flag: --pod-infra-container-image');
    return '';
  }
  const config = readFileSync(join(root, KUBELET_CONFIG), 'utf8');
  if (isStrict && isOnCgroupV1(root) && !/^failCgroupV1: false$/m.test(config)) {
    log('refused cgroup v1');
    return '';
  }
  using client = await connect(root);
  log(`started ${own}`);
  const now = rfc3339(systemClock.now());
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: '',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  };
  const nodeInfo = { kubeletVersion: own };
  await client.patch(
    nodes,
    name,
    { status: { nodeInfo, conditions: [ready] } },
    { type: 'merge', subresource: 'status' },
  );
  return '';
}

async function connect(root: string): Promise<KubeClient & Disposable> {
  return createClient(await loadClusterConfig({ path: join(root, 'etc/kubernetes/admin.conf') }));
}
