/** The scripts on hosts: a step has its own session, lock and journal, so it outlives its caller and never runs twice. */
import { printableUrl } from '../../../util/printable-url.ts';
import { parseVersion } from '../../../util/version.ts';
import { filledScript, quoted } from './filled-script.ts';
import type { Binaries, Binary, Containerd, Host, KubeadmOptions, Upgrade } from './host.ts';
import { scriptFile } from './script-file.ts';

export type HostStep = 'stage' | 'containerd' | 'kubeadm' | 'kubelet' | 'certificates';

export interface StepContext {
  readonly step: HostStep;
  /** Uid of the rollout: journal lines of other rollouts do not count. */
  readonly rollout: string;
  /** With `v`. */
  readonly version: string;
}

export interface StepBody {
  readonly before?: string;
  readonly body: string;
  readonly after?: string;
}

/** Seconds to wait for a running step of an earlier run: kubeadm may wait five minutes for each manifest. */
export const LOCK_WAIT = 1800;
export const EXIT_BUSY = 75;

export const PRELUDE = ['prelude.sh', 'trusted.sh', 'packages.sh'].map(scriptFile).join('');

const JOURNAL = scriptFile('journal.sh');
const BACKUPS = scriptFile('backups.sh');
const RESTORE = `${BACKUPS}${scriptFile('restore-manifests.sh')}`;
const WRONG = `${scriptFile('processor.sh')}${scriptFile('binaries.sh')}`;
export const KEEP = scriptFile('keep.sh');
export const KEEP_CONFIGURATION = `${KEEP}${scriptFile('keep-configuration.sh')}`;
export const LISTENS = scriptFile('listens.sh');
const KUBELET_PROCESS = scriptFile('kubelet-process.sh');
const OF_HOST = `${scriptFile('facts.sh')}${scriptFile('kubelet-facts.sh')}`;
export const FACTS = `${KUBELET_PROCESS}${OF_HOST}`;

/** Prints facts as lines `name=value`; `hard` and `warn` have sentences. Leaves nothing behind. `now`: milliseconds, here. */
export function probeScript(upgrade: Upgrade, host: Host, now: number): string {
  const { role } = host;
  const { patches, config } = optionsFor(upgrade, host);
  const { containerd } = upgrade;
  const given = [patches, config].flatMap((path) => path ?? []).map(quoted);
  const paths = untrustedOptions({ patches, config });
  if (role === 'controlPlane' && upgrade.etcdSnapshotCertificate !== undefined)
    paths.push(
      'command -v openssl >/dev/null || echo "no openssl in PATH: it encrypts the snapshot of etcd"\n',
    );
  const facts = `NEED=${IMAGES[role]}\nNOW=${Math.round(now / 1000)}\nPATCHED=${given.join('')}\nCONFIG=${quoted(config ?? '')}\n${scriptFile('host.sh')}${scriptFile('cni.sh')}${OF_HOST}`;
  return `VERSION=${quoted(upgrade.version)}
${PRELUDE}${KUBELET_PROCESS}${scriptFile('runtime.sh')}${WRONG}{ ${scriptFile('in-path.sh')}${each(binariesFor(upgrade, host), 'probe')}${containerd ? ofContainerd(containerd, 'probe_containerd') : ''}${paths.join('')}STAGED=${containerd ? 524_288 : 262_144}
${scriptFile('room.sh')}
} | sed -E '/^(warn|stopped)=/!s/^/hard=/'
${LISTENS}${facts}${role === 'controlPlane' ? `${BACKUPS}${scriptFile('missing-manifests.sh')}` : ''}`;
}

/** Lines that print who else could change a file that kubeadm would read as root. */
function untrustedOptions(options: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, path]) =>
    path === undefined ? [] : `untrusted_option ${name} ${quoted(path)}\n`,
  );
}

/** Prints who else could change the configuration that kubeadm would read; nothing while it is missing. */
export function configurationScript({ config }: KubeadmOptions): string {
  return config === undefined
    ? ''
    : `${PRELUDE}[ ! -e ${quoted(config)} ] || ${untrustedOptions({ config }).join('')}`;
}

/** Ends the script before kubeadm reads a file that somebody besides root could change. */
function refuseUntrusted({ patches, config }: KubeadmOptions): string {
  const lines = untrustedOptions({ patches, config });
  return lines
    .map((line) => `problem=$(${line.trimEnd()})\n[ -z "$problem" ] || fail "$problem"\n`)
    .join('');
}

/** KiB that new images may need, unless they are there already. */
const IMAGES = { controlPlane: 1_048_576, worker: 262_144 };

/** Restores manifests that a killed kubeadm left out. `byHand`: the backup of another kubeadm, which a person agreed to. */
export function repairScript(byHand?: string): string {
  const agreed = byHand === undefined ? '' : `BY_HAND=${quoted(byHand)}\n`;
  return detached(`${agreed}${PRELUDE}${RESTORE}`, 5);
}

/** The script exits at once if the journal says that the step is done; `before` runs before the step counts as begun. */
export function stepScript(
  context: StepContext,
  { before = '', body, after = '' }: StepBody,
): string {
  const { rollout, step, version } = context;
  const names = `ROLLOUT=${quoted(rollout)}\nSTEP=${quoted(step)}\nVERSION=${quoted(version)}\n`;
  const script = `seen done && exit 0\n${before}note begun\n${body}\nnote done\n${after}\n`;
  return detached(`${names}${PRELUDE}${JOURNAL}${script}`, LOCK_WAIT);
}

/** Fetches the binaries and checks their versions before anything on the node is replaced. */
export function stageBody({
  binaries,
  containerd,
}: Pick<Upgrade, 'binaries' | 'containerd'>): StepBody {
  return {
    body: `mkdir -p "$D/staged"\n${WRONG}${each(binaries, 'fetch')}${containerd ? ofContainerd(containerd, 'fetch_containerd') : ''}`,
  };
}

export function containerdBody(containerd: Containerd): StepBody {
  const given = `VERSION=${quoted(containerd.version)} ${namesOf(containerd)}mkdir -p "$D/staged"\n${WRONG}`;
  const stage = `stage() {\n${ofContainerd(containerd, 'fetch_containerd')}}\n`;
  return { before: KEEP_CONFIGURATION, body: `${given}${stage}${scriptFile('containerd.sh')}` };
}

export function putBackScript(rollout: string, containerd: Containerd): string {
  const script = `${PRELUDE}${JOURNAL}${KEEP}${scriptFile('containerd-back.sh')}`;
  return detached(`ROLLOUT=${quoted(rollout)} ${namesOf(containerd)}${script}`, LOCK_WAIT);
}

/** The daemon comes last. */
function namesOf({ binaries }: Containerd): string {
  const others = Object.keys(binaries).filter((name) => name !== 'containerd');
  return `NAMES=${quoted([...others, 'containerd'].join(' '))}\n`;
}

/** `work`: a function of binaries.sh. */
function each(binaries: SourcedBinaries, work: 'probe' | 'fetch'): string {
  return Object.entries(binaries)
    .map(([name, source]) => {
      const fieldOfAll = source.field === undefined ? '' : 'FIELD=binaries\n';
      return `${assigned(source)}${fieldNamed(source)}${work} ${name}\n${fieldOfAll}`;
    })
    .join('');
}

/** Messages about a binary name the field that it stands in. */
function fieldNamed({ field }: Sourced): string {
  return field === undefined ? '' : `FIELD=${quoted(field)}\n`;
}

/** `work`: a function of containerd-binaries.sh, in a shell of its own. */
function ofContainerd(
  containerd: Containerd,
  work: 'probe_containerd' | 'fetch_containerd',
): string {
  const sources = Object.entries(containerd.binaries).map(
    ([name, source]) => `${name}) ${assigned(source)};;\n`,
  );
  return `(VERSION=${quoted(containerd.version)} FIELD=containerd.binaries ${namesOf(containerd)}source_of() { case $1 in
${sources.join('')}esac; }
${scriptFile('containerd-binaries.sh')}${work})
`;
}

/** Stages the binaries, and lets the staged kubeadm check the host: workers have no credentials for `upgrade apply`. */
export function prepareScript(upgrade: Upgrade, host: Host, leads: boolean): string {
  const { config, ignorePreflightErrors: ignored = [] } = optionsFor(upgrade, host);
  const isController = host.role === 'controlPlane';
  // Two checks that begin in the same millisecond give their Job the same name: that of the leader counts.
  const isAlone =
    leads || !isController || config !== undefined || ignored.some((name) => /^all$/i.test(name));
  const flags = flagsOf({
    config,
    ignorePreflightErrors: isAlone ? ignored : [...ignored, 'CreateJob'],
  });
  const command = isController ? 'apply phase preflight "$VERSION" --yes' : 'node phase preflight';
  const has = !isController || hasPhases(upgrade.version);
  const preflight = has ? `"$D/staged/kubeadm" upgrade ${command}${flags}\n` : '';
  const plan = has && leads ? scriptFile('upgrade-plan.sh') : '';
  const names = `VERSION=${quoted(upgrade.version)}\n`;
  const trusted = refuseUntrusted(optionsFor(upgrade, host));
  return detached(
    `${names}${PRELUDE}${JOURNAL}${trusted}${stageBody({ ...upgrade, binaries: binariesFor(upgrade, host) }).body}${preflight}${plan}`,
    LOCK_WAIT,
  );
}

/** Prints what kubeadm would change in the static pod manifests; nothing if no kubeadm of the target is on the host. Leaves nothing behind. */
export function diffScript(upgrade: Upgrade, host: Host): string {
  return `VERSION=${quoted(upgrade.version)}
${PRELUDE}${WRONG}${assigned(binariesFor(upgrade, host).kubeadm)}${scriptFile('diff.sh')}`;
}

export function hasPhases(version: string): boolean {
  return (parseVersion(version)?.minor ?? 0) >= 31;
}

/** Values of the manifest are assigned here and then only used as `"$SOURCE"`, `"$CURL"`, `"$SHOWN"` and `"$SHA256"`. */
function assigned(source: Binary): string {
  const [kind, from] = 'path' in source ? ['path', source.path] : ['url', source.url];
  const values = { SOURCE: from, CURL: curlConfiguration(from), SHOWN: printableUrl(from) };
  const lines = Object.entries(values).map(([name, text]) => `${name}=${withArch(text)}\n`);
  return `KIND=${kind}\n${lines.join('')}${hashOf(source.sha256)}`;
}

/** The host knows its own processor. */
function withArch(text: string): string {
  return text.split('{arch}').map(quoted).join('"$ARCH"');
}

/** A host whose processor has no hash must not take that for a file without a hash. */
function hashOf(sha256: Binary['sha256'] = ''): string {
  if (typeof sha256 === 'string') return `SHA256=${quoted(sha256.toLowerCase())}\n`;
  const cases = Object.entries(sha256).map(
    ([arch, hash]) => `${quoted(arch)}) SHA256=${quoted(hash.toLowerCase())} ;;\n`,
  );
  return `case $ARCH in\n${cases.join('')}*) SHA256=missing ;;\nesac\n`;
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

const replaced = (name: string): string =>
  `keep ${name} "$(file_of ${name})"\ninstall_from staged ${name}\n`;

/** Puts kubeadm, kubelet and configuration back as the rollout found them. Static pods and etcd stay: etcd never goes back. */
export function rollBackScript(rollout: string): string {
  const script = `ROLLOUT=${quoted(rollout)}\n${PRELUDE}${JOURNAL}${KEEP}${scriptFile('roll-back.sh')}`;
  return detached(script, LOCK_WAIT);
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

function flagsOf(
  options: { readonly [Name in keyof KubeadmOptions]: KubeadmOptions[Name] | undefined },
): string {
  const given = Object.entries(options).flatMap(([name, value]) => {
    const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return value === undefined || String(value) === ''
      ? []
      : ` ${quoted(`--${flag}=${String(value)}`)}`;
  });
  return given.join('');
}

export function kubeadmBody(
  verb: 'apply' | 'node',
  role: Host['role'],
  options: KubeadmOptions,
): StepBody {
  const command = `${verb === 'apply' ? 'upgrade apply --yes "$VERSION"' : 'upgrade node'}${flagsOf(options)}`;
  // Ended by a signal, kubeadm may leave a manifest out; after an error of its own it has put them all back.
  const ended = '{ code=$?; [ "$code" -gt 128 ] || note failed; exit "$code"; }';
  const body = `${replaced('kubeadm')}kubeadm ${command} || ${ended}\n${scriptFile('remove-copies.sh')}`;
  const trusted = refuseUntrusted(options);
  return role === 'controlPlane'
    ? { before: `${trusted}${RESTORE}${scriptFile('record-run.sh')}${KEEP_CONFIGURATION}`, body }
    : {
        before: `${trusted}${KEEP_CONFIGURATION}`,
        body: `${body}${scriptFile('kubelet-flags.sh')}`,
      };
}

/** A host may have no kubectl. */
export function kubeletBody({ kubectl }: Pick<Upgrade['binaries'], 'kubectl'>): StepBody {
  const also =
    kubectl === undefined
      ? ''
      : `if command -v kubectl >/dev/null; then install_from staged kubectl; fi\n`;
  return {
    before: KEEP_CONFIGURATION,
    body: `${also}${replaced('kubelet')}systemctl daemon-reload\nsystemctl restart kubelet`,
    after: 'rm -rf "$D/staged" "$D/previous/.containerd"',
  };
}

/** Runs in its own session under the host's lock, and prints the last lines of its log, which a full disk does not stop. */
export function detached(body: string, waitSeconds: number): string {
  return filledScript('detached.sh', { BODY: body, BUSY: EXIT_BUSY, WAIT: waitSeconds });
}
