/** The scripts on hosts: a step has its own session, lock and journal, so it outlives its caller and never runs twice. */
import { printableUrl } from '../../../util/printable-url.ts';
import { parseVersion } from '../../../util/version.ts';
import { filledScript, type ScriptValues } from './filled-script.ts';
import type { Binaries, Binary, Containerd, Host, KubeadmOptions, Upgrade } from './host.ts';

export type HostStep = 'stage' | 'containerd' | 'kubeadm' | 'kubelet' | 'certificates';

export interface StepContext {
  readonly step: HostStep;
  /** Uid of the rollout: journal lines of other rollouts do not count. */
  readonly rollout: string;
  /** With `v`. */
  readonly version: string;
}

/** A script for a step. Its values are those besides `ROLLOUT`, `STEP` and `VERSION`, which every step has. */
export interface StepBody {
  readonly script: string;
  readonly values: ScriptValues;
}

/** Seconds to wait for a running step of an earlier run: kubeadm may wait five minutes for each manifest. */
export const LOCK_WAIT = 1800;
export const EXIT_BUSY = 75;

/** Returns a script that prints facts as lines `name=value`; `hard` and `warn` have sentences. It leaves nothing behind. `now`: milliseconds, here. */
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

/** Returns a script that prints what an upgrade should have changed, as lines `name=value`. */
export function factsScript({ role }: Host): string {
  return filledScript('facts.sh', { ROLE: role });
}

/** Returns a script that prints who else could change the configuration that kubeadm would read; nothing while it is missing. Empty if there is no configuration. */
export function configurationScript({ config }: KubeadmOptions): string {
  return config === undefined ? '' : filledScript('configuration.sh', { CONFIG: config });
}

/** Restores manifests that a killed kubeadm left out. `byHand`: the backup of another kubeadm, which a person agreed to. */
export function repairScript(byHand = ''): string {
  return detached(filledScript('repair.sh', { BY_HAND: byHand }), 5);
}

/** The script exits at once if the journal says that the step is done. */
export function stepScript(context: StepContext, { script, values }: StepBody): string {
  const { rollout, step, version } = context;
  const own = { ROLLOUT: rollout, STEP: step, VERSION: version };
  return detached(filledScript(script, { ...own, ...values }), LOCK_WAIT);
}

/** Fetches the binaries and checks their versions before anything on the node is replaced. */
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

/** The daemon comes last. */
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

/** Stages the binaries, and lets the staged kubeadm check the host: workers have no credentials for `upgrade apply`. */
export function prepareScript(upgrade: Upgrade, host: Host, leads: boolean): string {
  const { config, patches, ignorePreflightErrors: ignored = [] } = optionsFor(upgrade, host);
  const isController = host.role === 'controlPlane';
  // Two checks that begin in the same millisecond give their Job the same name: that of the leader counts.
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

/** Prints what kubeadm would change in the static pod manifests; nothing if no kubeadm of the target is on the host. Leaves nothing behind. */
export function diffScript(upgrade: Upgrade, host: Host): string {
  const { kubeadm } = binariesFor(upgrade, host);
  const { SOURCES } = sourcesOf({ kubeadm }, 'binaries');
  return filledScript('diff.sh', { VERSION: upgrade.version, SOURCES });
}

export function hasPhases(version: string): boolean {
  return (parseVersion(version)?.minor ?? 0) >= 31;
}

/**
 * Returns the names of the binaries, and lines `NAME KEY VALUE` that say where each comes from, as `source_of` of binaries.sh
 * reads them. A binary without a field of its own stands in `fieldOfAll`.
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

/** A host whose processor has no hash must not take that for a file without a hash. */
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

/** Escapes for `printf '%b'` of a shell. */
function inOneLine(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

const CURL_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

/** One line for `curl -K`, in which no character can begin another option. */
function curlConfiguration(url: string): string {
  return `url = "${url.replaceAll(/[\\"\n\r\t\v]/g, (found) => CURL_ESCAPES.get(found) ?? `\\${found}`)}"`;
}

/** Puts kubeadm, kubelet and configuration back as the rollout found them. Static pods and etcd stay: etcd never goes back. */
export function rollBackScript(rollout: string): string {
  return detached(filledScript('roll-back.sh', { ROLLOUT: rollout }), LOCK_WAIT);
}

export function optionsFor(upgrade: Pick<Upgrade, 'kubeadm'>, host: Host): KubeadmOptions {
  return { ...upgrade.kubeadm, ...host.kubeadm };
}

/** A binary, and the field of the manifest that it stands in where that is one of a host. */
type Sourced = Binary & { readonly field?: string };
type SourcedBinaries = { readonly [Name in keyof Binaries]: Sourced };

/** Those of the host replace those for all, one by one. */
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

/** A host may have no kubectl. */
export function kubeletBody({ kubectl }: Pick<Upgrade['binaries'], 'kubectl'>): StepBody {
  return { script: 'kubelet.sh', values: { KUBECTL: yesIf(kubectl !== undefined) } };
}

/** Runs in its own session under the host's lock, and prints the last lines of its log, which a full disk does not stop. */
export function detached(body: string, waitSeconds: number): string {
  return filledScript('detached.sh', { BODY: body, BUSY: EXIT_BUSY, WAIT: waitSeconds });
}
