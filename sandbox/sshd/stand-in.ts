/**
 * The program behind the stand-in kubeadm, kubelet and containerd of one host: `stand-in.ts PROGRAM VERSION ARGUMENTS…`. It does
 * what the real ones do to files and to the API in an upgrade, in the same order, and takes a moment for it.
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
import { join } from 'node:path';
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

const ROOT = process.env['REFIT_ROOT'] ?? '';
const MANIFESTS = join(ROOT, 'etc/kubernetes/manifests');
const TEMPORARY = join(ROOT, 'etc/kubernetes/tmp');
/** Milliseconds that each component takes to come up anew. */
const COMPONENT_MS = 60;
const KUBELET_CONFIG = join(ROOT, 'var/lib/kubelet/config.yaml');
const KUBELET_FLAGS = join(ROOT, 'var/lib/kubelet/kubeadm-flags.env');
const TMPFS = 0x01021994;
const KUBEADM_CONFIG = { namespace: 'kube-system', name: 'kubeadm-config' };

async function kubeadm(own: string, args: readonly string[]): Promise<void> {
  if (args[0] === 'certs') return renew(args);
  const { kind, phase, version: wanted, ignored } = parseKubeadm(args);
  using client = await connect();
  const config = await client.get(configMaps, KUBEADM_CONFIG.name, { namespace: KUBEADM_CONFIG.namespace });
  const cluster = kubernetesVersionOf(config);
  const isDone = !phase && kind !== 'plan';
  appendFileSync(join(ROOT, 'var/log', isDone ? 'kubeadm' : 'kubeadm-preflight'), `${args.join(' ')}\n`);
  if (kind === 'plan') return printPlan(cluster, wanted ?? own);
  if (kind === 'apply' && !existsSync(MANIFESTS))
    throw new Error('failed to load admin kubeconfig: open /etc/kubernetes/admin.conf: no such file or directory');
  const target = kind === 'apply' ? (wanted ?? own) : cluster;
  checkVersions(own, kind, cluster, target);
  if (isOnCgroupV1() && minorOf(own) >= 35 && !ignored.has('systemverification') && !ignored.has('all'))
    throw new Error(
      '[preflight] Some fatal errors occurred:\n\t[ERROR SystemVerification]: cgroups v1 support is deprecated',
    );
  const images = join(ROOT, 'images-missing');
  if (kind === 'apply' && existsSync(images))
    throw new Error(
      `[preflight] Some fatal errors occurred:\n\t[ERROR ImagePull]: failed to pull image ${readFileSync(images, 'utf8')}`,
    );
  if (phase) return;
  if (existsSync(MANIFESTS)) await replaceManifests(target, client);
  if (kind === 'apply') await recordVersion(client, config, target);
  const kubelet = join(TEMPORARY, `kubeadm-kubelet-config-${stampNow()}`);
  mkdirSync(kubelet, { recursive: true });
  copyFileSync(KUBELET_CONFIG, join(kubelet, 'config.yaml'));
  const { data } = await client.get(configMaps, 'kubelet-config', { namespace: KUBEADM_CONFIG.namespace });
  writeFileSync(KUBELET_CONFIG, `# written by kubeadm ${own}\n${data?.['kubelet'] ?? ''}`);
  // No other version does.
  if (minorOf(own) === 35) writeFileSync(KUBELET_FLAGS, flagsNow().replace(/ *--pod-infra-container-image=[^ "]*/, ''));
  process.stdout.write('[upgrade] SUCCESS!\n');
}

/** It does not need the API. A file `hooks/die-without/certs` kills it before the second. */
function renew([, verb, name = '', ...rest]: readonly string[]): void {
  if (verb !== 'renew' || name === '' || rest.length > 0) throw new Error(`unknown command certs ${verb} ${name}`);
  appendFileSync(join(ROOT, 'var/log/kubeadm'), `certs renew ${name}\n`);
  process.stdout.write(renewCertificate(ROOT, name));
  dieWhereAsked('certs');
}

/** As `-o json`. A text in `ROOT/plan-fails` is why it fails; one in `ROOT/manual-upgrade` is the group of a configuration that it cannot convert. */
function printPlan(cluster: string, target: string): void {
  if (!existsSync(MANIFESTS))
    throw new Error('failed to load admin kubeconfig: open /etc/kubernetes/admin.conf: no such file or directory');
  const fails = join(ROOT, 'plan-fails');
  if (existsSync(fails)) throw new Error(readFileSync(fails, 'utf8'));
  if (cluster === target) return;
  const step = (name: string): object => ({ name, currentVersion: cluster, newVersion: target });
  const components = COMPONENTS.filter((name) => name !== 'etcd').map(step);
  const manual = join(ROOT, 'manual-upgrade');
  const configVersions = (existsSync(manual) ? [readFileSync(manual, 'utf8')] : []).map((group) => ({
    group,
    currentVersion: 'v1alpha1',
    preferredVersion: 'v1beta1',
    manualUpgradeRequired: true,
  }));
  const availableUpgrades = [{ description: `version ${target}`, components }];
  const plan = { kind: 'UpgradePlan', apiVersion: 'output.kubeadm.k8s.io/v1alpha3', availableUpgrades, configVersions };
  process.stdout.write(`${JSON.stringify(plan, null, 4)}\n`);
}

const flagsNow = (): string => (existsSync(KUBELET_FLAGS) ? readFileSync(KUBELET_FLAGS, 'utf8') : '');

function minorOf(version: string): number {
  return parseVersion(version)?.minor ?? Number.NaN;
}

function isOlder(version: string, than: string): boolean {
  const [a, b] = [parseVersion(version), parseVersion(than)];
  return a !== undefined && b !== undefined && compareVersions(a, b) < 0;
}

/** As `stat -f` tells it. */
function isOnCgroupV1(): boolean {
  const path = join(ROOT, 'sys/fs/cgroup');
  return existsSync(path) && statfsSync(path).type === TMPFS;
}

/** Preflight: what is refused is refused before anything is touched. */
function checkVersions(own: string, kind: 'apply' | 'node', cluster: string, target: string): void {
  const [kubeadm, from, to] = [own, cluster, target].map(minorOf);
  if (kubeadm === undefined || from === undefined || to === undefined) return;
  const specified = `Specified version to upgrade to "${target}"`;
  if (to > from + 1) throw new Error(`${specified} is too high; kubeadm can upgrade only 1 minor version at a time`);
  if (kind === 'apply' && isOlder(own, target))
    throw new Error(`${specified} is higher than the kubeadm version "${own}". Upgrade kubeadm first`);
  if (kind === 'node' && kubeadm < from) throw new Error(`kubeadm ${own} is older than the cluster at ${cluster}`);
  const missing = COMPONENTS.filter((name) => existsSync(MANIFESTS) && !existsSync(join(MANIFESTS, `${name}.yaml`)));
  if (missing.length > 0) throw new Error(`[preflight] missing manifests: ${missing.join(', ')}`);
}

/** Each one: the current to the backup, the new one in its place. A kill between the two leaves neither. */
async function replaceManifests(target: string, client: KubeClient): Promise<void> {
  const stamp = stampNow();
  const [fresh, backup] = [`kubeadm-upgraded-manifests${stamp}`, `kubeadm-backup-manifests-${stamp}`].map((name) =>
    join(TEMPORARY, name),
  );
  if (fresh === undefined || backup === undefined) return;
  const copy = join(TEMPORARY, `kubeadm-backup-etcd-${stamp}`, 'etcd/member/snap');
  for (const folder of [fresh, backup, copy]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(copy, 'db'), '');
  for (const name of COMPONENTS) {
    const current = join(MANIFESTS, `${name}.yaml`);
    const text = readFileSync(current, 'utf8');
    const next = manifestOf(name, text, target);
    if (next === text) continue;
    writeFileSync(join(fresh, `${name}.yaml`), next);
    renameSync(current, join(backup, `${name}.yaml`));
    dieWhereAsked(name);
    renameSync(join(fresh, `${name}.yaml`), current);
    await mirror(client, name, next);
    await sleep(systemClock, COMPONENT_MS);
  }
  for (const name of readdirSync(TEMPORARY)) {
    if (name.startsWith('kubeadm-upgraded-manifests')) rmSync(join(TEMPORARY, name), { recursive: true });
  }
}

/** That of etcd is another with each version of kubeadm too, whatever its image. */
function manifestOf(name: string, text: string, target: string): string {
  if (name === 'etcd') return `# kubeadm ${target}\n${text.replace(/^# kubeadm .*\n/, '')}`;
  return text.replace(/(kube-[a-z-]+):v[\d.]+/, `$1:${target}`);
}

/** As kubeadm writes it: `2026-11-22-12-00-00`. Never one that is there: kubeadm takes longer than a second. */
function stampNow(): string {
  const there = existsSync(TEMPORARY) ? readdirSync(TEMPORARY) : [];
  for (let at = Date.now(); ; at += 1000) {
    const stamp = new Date(at).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-');
    if (!there.some((name) => name.endsWith(stamp))) return stamp;
  }
}

/** As the kubelet does: its pod in the API gets the image of the manifest. */
async function mirror(client: KubeClient, name: string, manifest: string): Promise<void> {
  const pod = `${name}-${readFileSync(join(ROOT, 'etc/hostname'), 'utf8')}`;
  const [, image] = /image: (.*)/.exec(manifest) ?? [];
  const options = { namespace: KUBEADM_CONFIG.namespace, type: 'strategic' } as const;
  await client.patch(pods, pod, { spec: { containers: [{ name, image }] } }, options);
}

/** As a power cut would, once. */
function dieWhereAsked(component: string): void {
  const hook = join(ROOT, 'hooks/die-without', component);
  if (!existsSync(hook)) return;
  rmSync(hook);
  process.kill(process.pid, 'SIGKILL');
}

async function recordVersion(client: KubeClient, config: ConfigMap, target: string): Promise<void> {
  const cluster = parse(config.data?.['ClusterConfiguration'] ?? '') as Record<string, unknown>;
  const data = { ...config.data, ClusterConfiguration: stringify({ ...cluster, kubernetesVersion: target }) };
  await client.replace(configMaps, { ...config, data });
}

function kubernetesVersionOf(config: ConfigMap): string {
  const { kubernetesVersion } = parse(config.data?.['ClusterConfiguration'] ?? '') as { kubernetesVersion: string };
  return kubernetesVersion;
}

/** What a kubelet tells of a containerd that was restarted. */
async function containerd(own: string, [name = '']: readonly string[]): Promise<void> {
  using client = await connect();
  const nodeInfo = { containerRuntimeVersion: `containerd://${own.slice(1)}` };
  await client.patch(nodes, name, { status: { nodeInfo } }, { type: 'merge', subresource: 'status' });
}

/** What a kubelet tells of itself after its start. */
async function kubelet(own: string, [name = '']: readonly string[]): Promise<void> {
  if (minorOf(own) >= 35 && flagsNow().includes('--pod-infra-container-image')) {
    appendFileSync(join(ROOT, 'var/log/kubelet'), `unknown flag: --pod-infra-container-image\n`);
    return;
  }
  if (isOnCgroupV1() && minorOf(own) >= 35 && !/^failCgroupV1: false$/m.test(readFileSync(KUBELET_CONFIG, 'utf8'))) {
    appendFileSync(join(ROOT, 'var/log/kubelet'), `refused cgroup v1\n`);
    return;
  }
  using client = await connect();
  appendFileSync(join(ROOT, 'var/log/kubelet'), `started ${own}\n`);
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
}

async function connect(): Promise<KubeClient & Disposable> {
  return createClient(await loadClusterConfig({ path: join(ROOT, 'etc/kubernetes/admin.conf') }));
}

const [program, version = '', ...args] = process.argv.slice(2);
try {
  const programs = { kubelet, containerd, kubeadm };
  await programs[program as keyof typeof programs](version, args);
} catch (error) {
  process.stderr.write(`error: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
