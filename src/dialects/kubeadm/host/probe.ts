/** Reads the facts of a host from its files and binaries. */
import { RefitError } from '../../../util/errors.ts';
import { defined } from '../../../util/json.ts';
import { shownLine } from '../../../util/log-line.ts';
import { parseVersion } from '../../../util/version.ts';
import { type Finding, hard, warn } from '../../../versions/findings.ts';
import { type NodeFacts } from '../../../versions/kubeadm-rules.ts';
import { type Certificate, certificatesIn, endingSoon } from './certificates.ts';
import { type EtcdAnswer, etcdAnswer, etcdScript } from './etcd.ts';
import type { Host, Shells, Upgrade } from './host.ts';
import { certificateFindings, trustFindings } from './next-start.ts';
import { factsScript, optionsFor, probeScript } from './scripts.ts';

export interface HostFacts {
  readonly host: Host;
  /**
   * The versions of the binaries start with `v`; undefined if a binary is missing or cannot be
   * executed.
   */
  readonly kubeadm: string | undefined;
  readonly kubelet: string | undefined;
  /**
   * The number of times that systemd has restarted the kubelet after a crash since its last regular start, and the last
   * line of the kubelet's log.
   */
  readonly kubeletCrashes?: { readonly times: number; readonly line: string } | undefined;
  readonly ground: Pick<NodeFacts, 'cgroup' | 'containerd' | 'kernel' | 'ignores'>;
  /** The versions of the static pods by component. Workers have none. */
  readonly staticPods: Readonly<Record<string, string | undefined>>;
  /** The images of static pods whose tag is not a version, by component. */
  readonly unreadImages?: Readonly<Record<string, string>> | undefined;
  /** The port of the API server on a control-plane host. A load balancer may use another port. */
  readonly apiPort: number | undefined;
  readonly problems: readonly Finding[];
  /**
   * The processes because of which the host is busy: a running step of Refit, any other kubeadm with its process id, or
   * an API server that is starting because its manifest was replaced a short time ago.
   */
  readonly busy: readonly string[];
  /** The manifests of a control-plane host that are missing although backups of them exist. */
  readonly missing: readonly MissingManifest[];
  readonly certificates: readonly Certificate[];
  /** The phases that the UpgradeConfiguration of the manifest switches off, such as `apply:etcdUpgrade:`. */
  readonly leaves?: readonly string[];
  /**
   * The certificates that kubeadm should renew now, with the reasons; undefined if kubeadm may not renew certificates.
   * Only `probeHost` sets this field.
   */
  readonly toRenew?: readonly string[] | undefined;
  readonly etcd: EtcdAnswer | undefined;
  /** The flags with which systemd will start the kubelet, and the files that have them. Only gates have a value. */
  readonly kubeletFlags?: readonly KubeletFlag[];
  /** The kubeconfig with which the kubelet asks for a new certificate; undefined if the host has no such file. */
  readonly bootstrap?: string;
}

export interface KubeletFlag {
  readonly name: string;
  readonly file: string;
  readonly value: string;
}

export interface MissingManifest {
  readonly name: string;
  /**
   * The origin of the backup. `run`: an unfinished run of Refit made it. `hand`: it was made by a kubeadm that a person
   * ran. `refused`: the backup must not be restored.
   */
  readonly backup: 'run' | 'hand' | 'refused';
  readonly detail: string;
}

const PATIENCE_MS = 60_000;

export async function probeHost(
  shells: Shells,
  upgrade: Upgrade,
  host: Host,
  now: number,
): Promise<HostFacts> {
  const facts = await factsBy(probeScript(upgrade, host, now), shells, host);
  const { certificateRenewal: asked } = optionsFor(upgrade, host);
  const isRenewed = asked ?? !facts.leaves?.join().includes('certificateRenewal');
  const renewable = facts.certificates.filter(({ renewal }) => renewal !== undefined);
  const toRenew = isRenewed
    ? endingSoon(renewable, now, false).map(({ found }) => found)
    : undefined;
  const { ignorePreflightErrors = [] } = optionsFor(upgrade, host);
  const ignores = [...ignorePreflightErrors, ...(facts.ground.ignores ?? [])];
  return {
    ...facts,
    ground: { ...facts.ground, ...(ignores.length > 0 ? { ignores } : {}) },
    toRenew,
    problems: [...facts.problems, ...certificateFindings(facts, now, isRenewed)],
  };
}

/** Reads only the facts that an upgrade is expected to change. */
export async function readFacts(shells: Shells, host: Host): Promise<HostFacts> {
  return await factsBy(factsScript(host), shells, host);
}

/** Queries the etcd member of each host. The result does not contain hosts without a member. */
export async function etcdAnswers(
  shells: Shells,
  hosts: readonly Host[],
): Promise<Map<string, EtcdAnswer>> {
  const controllers = hosts.filter(({ role }) => role === 'controlPlane');
  const all = controllers.map(async (host) => ({
    host,
    etcd: (await factsBy(etcdScript(), shells, host)).etcd,
  }));
  return answersOf(await Promise.all(all));
}

/**
 * Queries all members of etcd from one host. If the member of that host does not answer, the result contains only that
 * host, because only the member of that host can list the other members.
 */
export async function etcdAnswersFrom(
  shells: Shells,
  host: Host,
): Promise<Map<string, EtcdAnswer>> {
  const answers = await etcdAnswers(shells, [host]);
  const own = answers.get(host.name);
  if (typeof own !== 'object') return answers;
  for (const { ID, name, urls: [url] = [] } of own.members) {
    // A member without a URL was added to the cluster, but has never started.
    if (ID === own.id || url === undefined) continue;
    const { stdout } = await shells.run(host, etcdScript(url), PATIENCE_MS);
    answers.set(name, parseFacts(stdout).etcd ?? 'no answer');
  }
  return answers;
}

export function answersOf(
  hosts: readonly Pick<HostFacts, 'host' | 'etcd'>[],
): Map<string, EtcdAnswer> {
  return new Map(
    hosts.flatMap(({ host, etcd }) => (etcd === undefined ? [] : [[host.name, etcd]])),
  );
}

async function factsBy(script: string, shells: Shells, host: Host): Promise<HostFacts> {
  const { code, stdout, stderr } = await shells.run(host, script, PATIENCE_MS);
  if (code !== 0) {
    const why = (stderr.trim() || stdout.trim()).split('\n').at(-1) ?? '';
    throw new RefitError(
      'REFIT_REFUSED',
      `${host.name}: cannot read facts from the host (exit code ${code}): ${why}`,
    );
  }
  const facts = { host, ...parseFacts(stdout) };
  if (host.role === 'controlPlane') return facts;
  // A worker does not use these certificates. They are left from a time when the host had a control plane, or they come
  // from a copy of admin.conf.
  const used = facts.certificates.filter(
    ({ isAuthority, isOfKubelet }) => isAuthority || isOfKubelet,
  );
  return { ...facts, certificates: used };
}

export function parseFacts(text: string): Omit<HostFacts, 'host'> {
  const lines = text.split('\n').map((line): [string, string] => {
    const at = line.indexOf('=');
    return [line.slice(0, Math.max(0, at)), line.slice(at + 1)];
  });
  const all = (name: string): string[] =>
    lines.flatMap(([key, value]) => (key === name && value !== '' ? value : []));
  const images = lines.flatMap(([key, value]) =>
    key.startsWith('image.') ? [[key.slice(6), value] as const] : [],
  );
  return {
    kubeadm: all('kubeadm').find(parseVersion),
    kubelet: all('kubelet').find(parseVersion),
    kubeletCrashes: crashesIn(all('kubeletCrashes')[0]),
    ground: groundOf(lines, all('ignores')),
    problems: [
      ...all('hard').map((message) => hard('host', message)),
      ...all('warn').map((message) => warn('host', message)),
      ...all('stopped').map((message) => hard('kubelet', message)),
      ...all('clock').map((message) => warn('clock', message)),
      ...all('pod').map((message) => warn('pod', message)),
      ...trustFindings(all('certificate'), all('kubeletTrusts')),
    ],
    ...defined({ bootstrap: all('bootstrap')[0], kubeletFlags: flagsIn(all('kubeletFlag')) }),
    busy: all('busy'),
    apiPort: all('apiPort')
      .map(Number)
      .find((found) => Number.isInteger(found) && found > 0 && found <= 65_535),
    staticPods: Object.fromEntries(images.map(([name, image]) => [name, tagOf(image)])),
    unreadImages: unreadIn(images),
    missing: all('missing').flatMap((line) => missingIn(line) ?? []),
    certificates: certificatesIn(all('certificate'), all('key'), all('kubeletCertificate')),
    leaves: all('leaves'),
    etcd: etcdAnswer(all('etcd')),
  };
}

function crashesIn(text = ''): HostFacts['kubeletCrashes'] {
  const [, times, line = ''] = /^(\d+) (.*)$/.exec(text) ?? [];
  return times === undefined ? undefined : { times: Number(times), line: shownLine(line) };
}

/** Reads lines `FILE --NAME=VALUE`. Returns undefined if there are none. */
function flagsIn(lines: readonly string[]): KubeletFlag[] | undefined {
  const flags = lines.flatMap((line): KubeletFlag[] => {
    const [, file = '', name = '', value = '='] = /^(\S+) --([^=]+)(=.*)?$/.exec(line) ?? [];
    return name === '' ? [] : [{ name, file, value: value.slice(1) }];
  });
  return flags.length > 0 ? flags : undefined;
}

function missingIn(line: string): MissingManifest | undefined {
  const [, name = '', backup = '', detail = ''] =
    /^(\S+) (run|hand|refused) (.*)$/.exec(line) ?? [];
  return backup === 'run' || backup === 'hand' || backup === 'refused'
    ? { name, backup, detail }
    : undefined;
}

/**
 * Returns the version in the tag of an image reference. The reference may have quotes, a registry with a port, and a
 * digest. Tags cannot contain `+`, so a tag has `_` in its place.
 */
export function tagOf(image: string): string | undefined {
  const name = unquoted(image).split('@', 1)[0]?.split('/').at(-1) ?? '';
  const tag = name.slice(name.indexOf(':') + 1).replace('_', '+');
  return name.includes(':') && parseVersion(tag) ? tag : undefined;
}

function unquoted(image: string): string {
  return /^(["'])([^"']*)\1/.exec(image)?.[2] ?? image.split(/\s/, 1)[0] ?? '';
}

/** Returns the images whose tag is not a version, by component; undefined if there are none. */
function unreadIn(images: readonly (readonly [string, string])[]): HostFacts['unreadImages'] {
  const unread = images.filter(([, image]) => tagOf(image) === undefined);
  if (unread.length === 0) return undefined;
  return Object.fromEntries(unread.map(([name, image]) => [name, unquoted(image)]));
}

/**
 * Returns three versions: the version of cgroups from the file system type of /sys/fs/cgroup, the version of containerd
 * from `containerd --version`, and the version of the kernel from `uname -r`. If a text cannot be parsed, returns its
 * beginning in place of the version.
 */
function groundOf(
  lines: readonly (readonly [string, string])[],
  ignores: readonly string[],
): HostFacts['ground'] {
  const found = new Map(lines);
  const cgroup = found.get('cgroup');
  const containerd = found.get('containerd') || undefined;
  const kernel = found.get('kernel') || undefined;
  const versions: ReadonlyMap<string, 1 | 2> = new Map([
    ['cgroup2fs', 2],
    ['tmpfs', 1],
  ]);
  return defined({
    cgroup: cgroup === undefined ? undefined : (versions.get(cgroup) ?? unread(cgroup)),
    containerd: containerd && (RELEASE.exec(containerd)?.[1] ?? unread(containerd)),
    kernel: kernel && (/^\d+\.\d+/.exec(kernel)?.[0] ?? unread(kernel)),
    ignores: ignores.length > 0 ? ignores : undefined,
  });
}

/** Matches `containerd github.com/containerd/containerd/v2 v2.3.3 1c4457e00facac03`, with or without a suffix of the version. */
const RELEASE = /^\S+ \S+ v?(\d+\.\d+\.\d+)/;

function unread(text: string): string {
  return text === '' ? 'no output' : text.slice(0, 60);
}
