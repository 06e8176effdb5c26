/**
 * Builds the scripts for hosts. A step runs in a separate session, with a lock and a journal. So it continues when its
 * caller ends, and it never runs twice at the same time.
 */
import { printableUrl } from '../../../util/printable-url.ts';
import { parseVersion } from '../../../util/version.ts';
import { filledScript, type ScriptValues } from './filled-script.ts';
import type { Binaries, Binary, Containerd, Host, KubeadmOptions, Upgrade } from './host.ts';

export type HostStep = 'stage' | 'containerd' | 'kubeadm' | 'kubelet' | 'certificates';

export interface StepContext {
  readonly step: HostStep;
  /** The uid of the rollout. Journal lines of other rollouts are ignored. */
  readonly rollout: string;
  /** The version starts with `v`. */
  readonly version: string;
}

/**
 * A script for a step, with its values. Every step also has the values `ROLLOUT`, `STEP` and
 * `VERSION`.
 */
export interface StepBody {
  readonly script: string;
  readonly values: ScriptValues;
}

/** The most seconds to wait for the end of a step of an earlier run. kubeadm may wait five minutes for each manifest. */
export const LOCK_WAIT = 1800;
export const EXIT_BUSY = 75;

/**
 * Returns a script that prints facts as lines `name=value`, and sentences about problems as `hard` and `warn`. It
 * leaves no file on the host. `now` is the time on this machine in milliseconds. The script compares this time with the
 * clock of the host.
 */
export function probeScript(upgrade: Upgrade, host: Host, now: number): string {
  const { patches, config } = optionsFor(upgrade, host);
  return filledScript('probe.sh', {
    ROLE: host.role,
    VERSION: upgrade.version,
    ...sourcesOf(binariesFor(upgrade, host), 'binaries'),
    ...containerdValues(upgrade.containerd),
    CONFIG: config ?? '',
    PATCHES: patches ?? '',
    ENCRYPTS: yesIf(upgrade.etcdSnapshotCertificate !== undefined),
    NOW: Math.round(now / 1000),
  });
}

/** Returns a script that prints the facts that an upgrade is expected to change, as lines `name=value`. */
export function factsScript({ role }: Host): string {
  return filledScript('facts.sh', { ROLE: role });
}

/**
 * Returns a script that prints which users other than root could change the configuration of kubeadm. The script prints
 * nothing if the file is missing. Returns an empty text if no configuration is set.
 */
export function configurationScript({ config }: KubeadmOptions): string {
  return config === undefined ? '' : filledScript('configuration.sh', { CONFIG: config });
}

/**
 * Returns a script that restores the manifests that a killed kubeadm had removed. `byHand` is the path of a backup that
 * comes from a kubeadm started by a person. The caller may pass it only if a person has agreed to restore this backup.
 */
export function repairScript(byHand = ''): string {
  return detached(filledScript('repair.sh', { BY_HAND: byHand }), 5);
}

/** Returns the script of a step. The script exits at once if the journal on the host says that the step is done. */
export function stepScript(context: StepContext, { script, values }: StepBody): string {
  const { rollout, step, version } = context;
  const own = { ROLLOUT: rollout, STEP: step, VERSION: version };
  return detached(filledScript(script, { ...own, ...values }), LOCK_WAIT);
}

/**
 * Returns the step that downloads the binaries and checks their versions. It runs before anything on the node is
 * replaced.
 */
export function stageBody({
  binaries,
  containerd,
}: Pick<Upgrade, 'containerd'> & { readonly binaries: SourcedBinaries }): StepBody {
  const values = { ...sourcesOf(binaries, 'binaries'), ...containerdValues(containerd) };
  return { script: 'stage.sh', values };
}

export function containerdBody(containerd: Containerd): StepBody {
  return { script: 'containerd.sh', values: containerdValues(containerd) };
}

export function putBackScript(rollout: string, containerd: Containerd): string {
  const values = { ROLLOUT: rollout, NAMES: namesOf(containerd) };
  return detached(filledScript('containerd-back.sh', values), LOCK_WAIT);
}

/** Returns the names of the binaries of containerd. The daemon is the last name, so that it is replaced last. */
function namesOf({ binaries }: Containerd): string {
  const others = Object.keys(binaries).filter((name) => name !== 'containerd');
  return [...others, 'containerd'].join(' ');
}

function containerdValues(containerd: Containerd | undefined): ScriptValues {
  if (containerd === undefined)
    return { CONTAINERD_VERSION: '', CONTAINERD_NAMES: '', CONTAINERD_SOURCES: '' };
  const { SOURCES } = sourcesOf(containerd.binaries, 'containerd.binaries');
  return {
    CONTAINERD_VERSION: containerd.version,
    CONTAINERD_NAMES: namesOf(containerd),
    CONTAINERD_SOURCES: SOURCES,
  };
}

function yesIf(condition: boolean): string {
  return condition ? 'yes' : '';
}

/**
 * Returns a script that stages the binaries and checks the host with the staged kubeadm. On workers, it does not run
 * the checks of `upgrade apply`, because workers do not have the credentials for it.
 */
export function prepareScript(upgrade: Upgrade, host: Host, leads: boolean): string {
  const { config, patches, ignorePreflightErrors: ignored = [] } = optionsFor(upgrade, host);
  const isController = host.role === 'controlPlane';
  // kubeadm's preflight creates a Job whose name contains the time. If the preflight of two hosts started in the same
  // millisecond, both Jobs would have the same name. So only the first control-plane host creates such a Job.
  const isAlone =
    leads || !isController || config !== undefined || ignored.some((name) => /^all$/i.test(name));
  const has = !isController || hasPhases(upgrade.version);
  const check = isController ? 'apply' : 'node';
  const script = filledScript('prepare.sh', {
    VERSION: upgrade.version,
    ...stageBody({ ...upgrade, binaries: binariesFor(upgrade, host) }).values,
    CONFIG: config ?? '',
    PATCHES: patches ?? '',
    IGNORED: (isAlone ? ignored : [...ignored, 'CreateJob']).join(','),
    CHECK: has ? check : '',
    PLAN: yesIf(has && leads),
  });
  return detached(script, LOCK_WAIT);
}

/**
 * Returns a script that prints what kubeadm would change in the static pod manifests. If the host has no kubeadm of the
 * target version, the script prints nothing. It leaves no file on the host.
 */
export function diffScript(upgrade: Upgrade, host: Host): string {
  const { kubeadm } = binariesFor(upgrade, host);
  const { SOURCES } = sourcesOf({ kubeadm }, 'binaries');
  return filledScript('diff.sh', { VERSION: upgrade.version, SOURCES });
}

export function hasPhases(version: string): boolean {
  return (parseVersion(version)?.minor ?? 0) >= 31;
}

/**
 * Returns the names of the binaries, and lines `NAME KEY VALUE` with the source of each binary, for `source_of` in
 * binaries.sh. `fieldOfAll` is the field with the binaries for all hosts.
 */
function sourcesOf(
  binaries: Readonly<Record<string, Sourced>>,
  fieldOfAll: string,
): { readonly NAMES: string; readonly SOURCES: string } {
  const lines = Object.entries(binaries).flatMap(([name, source]) =>
    sourceLines({ field: fieldOfAll, ...source }).map(
      ([key, value]) => `${name} ${key} ${inOneLine(value)}`,
    ),
  );
  return { NAMES: Object.keys(binaries).join(' '), SOURCES: lines.join('\n') };
}

/**
 * Returns the lines of one binary. If there is no hash for the processor of a host, the lines record that, because the
 * host must not accept a file without a hash.
 */
function sourceLines(
  source: Required<Pick<Sourced, 'field'>> & Binary,
): (readonly [key: string, value: string])[] {
  const [kind, from] = 'path' in source ? ['path', source.path] : ['url', source.url];
  const { sha256 = '' } = source;
  const hashes = typeof sha256 === 'string' ? { sha256 } : hashesByProcessor(sha256);
  return [
    ['field', source.field],
    ['kind', kind],
    ['source', from],
    ['curl', curlConfiguration(from)],
    ['shown', printableUrl(from)],
    ...Object.entries(hashes).map(([key, hash]) => [key, hash.toLowerCase()] as const),
  ];
}

function hashesByProcessor(hashes: Readonly<Record<string, string>>): Record<string, string> {
  const own = Object.entries(hashes).map(([arch, hash]) => [`sha256.${arch}`, hash] as const);
  return Object.fromEntries<string>([...own, ['sha256', 'missing']]);
}

/** Escapes a text for `printf '%b'` of a shell. */
function inOneLine(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

const CURL_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

/** Returns one line for `curl -K`. The URL is escaped, so that no character of it can begin another option. */
function curlConfiguration(url: string): string {
  return `url = "${url.replaceAll(/[\\"\n\r\t\v]/g, (found) => CURL_ESCAPES.get(found) ?? `\\${found}`)}"`;
}

/** Returns a script that restores kubeadm, the kubelet and its configuration as they were before the rollout. */
export function rollBackScript(rollout: string): string {
  return detached(filledScript('roll-back.sh', { ROLLOUT: rollout }), LOCK_WAIT);
}

/**
 * Returns a script that restores the manifests of the static pods to the state before the rollout. It restores either
 * all of them or none. It fails with a reason if one of them must not be restored. For example, etcd and the API server
 * must never return to an earlier minor version.
 */
export function staticPodsBackScript(rollout: string): string {
  return detached(filledScript('static-pods-back.sh', { ROLLOUT: rollout }), LOCK_WAIT);
}

export function optionsFor(upgrade: Pick<Upgrade, 'kubeadm'>, host: Host): KubeadmOptions {
  return { ...upgrade.kubeadm, ...host.kubeadm };
}

/** A binary. `field` is the field of the manifest that defines it; undefined if the binary is for all hosts. */
type Sourced = Binary & { readonly field?: string };
type SourcedBinaries = { readonly [Name in keyof Binaries]: Sourced };

/**
 * Returns the binaries of one host. A binary that is defined for this host replaces the binary with the same name for
 * all hosts.
 */
export function binariesFor(
  { binaries }: Pick<Upgrade, 'binaries'>,
  { name, binaries: own = {} }: Pick<Host, 'name' | 'binaries'>,
): SourcedBinaries {
  const field = `hosts[${name}].binaries`;
  const { kubeadm, kubelet, kubectl } = own;
  return {
    ...binaries,
    ...(kubeadm ? { kubeadm: { ...kubeadm, field } } : {}),
    ...(kubelet ? { kubelet: { ...kubelet, field } } : {}),
    ...(kubectl ? { kubectl: { ...kubectl, field } } : {}),
  };
}

export function kubeadmBody(
  verb: 'apply' | 'node',
  role: Host['role'],
  options: KubeadmOptions,
): StepBody {
  const { config, patches, ignorePreflightErrors = [], certificateRenewal, etcdUpgrade } = options;
  const values = {
    CONFIG: config ?? '',
    PATCHES: patches ?? '',
    IGNORED: ignorePreflightErrors.join(','),
    CERTIFICATE_RENEWAL: String(certificateRenewal ?? ''),
    ETCD_UPGRADE: String(etcdUpgrade ?? ''),
    ROLE: role,
    VERB: verb,
  };
  return { script: 'kubeadm.sh', values };
}

/** Returns the step that replaces the kubelet. It also replaces kubectl if there is a binary for it and the host has kubectl. */
export function kubeletBody({ kubectl }: Pick<Upgrade['binaries'], 'kubectl'>): StepBody {
  return { script: 'kubelet.sh', values: { KUBECTL: yesIf(kubectl !== undefined) } };
}

/**
 * Returns a script that runs `body` in a separate session under the lock of the host. The script prints the last lines
 * of the log of `body`, even if the disk is full.
 */
export function detached(body: string, waitSeconds: number): string {
  return filledScript('detached.sh', { BODY: body, BUSY: EXIT_BUSY, WAIT: waitSeconds });
}
