/** The agent's command line. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Procedure } from '../signal/agent-presence.ts';
import { SIGNAL_OBJECTS } from '../signal/names.ts';
import { isAllowance } from '../signal/node-configuration.ts';
import { parseDuration } from '../util/duration.ts';
import { failing, messageOf, RefitError, usageError } from '../util/errors.ts';
import type { LogLevel } from '../util/log.ts';
import { parseVersion } from '../util/version.ts';
import type { DownloadLimits } from './download/fetch.ts';
import { type ControllerMode, isAddress } from './registration/control-node.ts';
import { assertTrustedPath } from './state/trusted-path.ts';
import type { BesideK0s } from './step-input.ts';

export type AgentOptions = NonNullable<ReturnType<typeof parseAgentOptions>>;

const MODES: readonly ControllerMode[] = ['controller', 'controller+worker'];

export const AGENT_HELP = `Usage: refit agent [options]

Upgrades the node it runs on when its Node or ControlNode carries a signal.

  --object <kind>             node (workers) or controlnode (controllers); default node
  --name <name>               name of the object; default: --hostname-override of the kubelet, AUTOPILOT_HOSTNAME, the host's name
  --kubeconfig <file>         default: KUBECONFIG, the pod's service account, ~/.kube/config
  --procedure <name>          what runs on this host: k0s or kubeadm; default k0s
  --node-configuration <list> what Cluster API may change on this host: files, folders, user:NAME (keys) and kubelet; default: none
  --kubeadm-config <file>     UpgradeConfiguration for kubeadm: its options, such as patches; default: none
  --status-socket <path>      status socket of the service; default: from the running service
  --data-dir <directory>      data directory of the service; default: from the running service
  --binary <path>             the service's binary; default: the file that its process executes
  --state-dir <directory>     journal and lock; default /var/lib/refit
  --run-dir <directory>       lock of the host, which has one agent; default /run/refit for root, else the state directory
  --mode <mode>               role of a controller: controller or controller+worker; default: from the service
  --api-address <ip>          address of a controller's API server; default: from the service, else the host's first address
  --max-download-bytes <n>    size limit of a download; default 1073741824 (1 GiB)
  --disk-reserve <n>          bytes that a download leaves free on its disk, unless a policy sets them; default 134217728 (128 MiB)
  --allow-insecure-redirect   follow a redirect of a download from https to plain http, as the original does
  --download-timeout <time>   limit for all attempts together, unless a policy sets one; default 6h
  --stall-timeout <time>      limit without a received byte; default 60s
  --restart-timeout <time>    limit for the new version to answer, else the agent rolls back; default 90s
  --soak <time>               how long the new process must then keep running, or 0; default 5s
  --ready-timeout <time>      limit for the node to become Ready after its first answer; default 2m
  --require-sha256            refuse plans without a sha256
  --require-https             refuse downloads over plain http, redirects included
  --unverified-downloads <w>  refuse or allow downloads with neither https nor a sha256; default refuse
  --allowed-hosts <list>      only download from these hosts, redirects included, such as mirror.example:8443,*.k0sproject.io
  --lowest-version <version>  refuse versions below it
  --refuse-downgrade          refuse versions below the running one
  --allow-cgroup-v1           accept versions from v1.35 on though this host has cgroup v1 and its kubelet seems to refuse that
  --max-signal-age <time>     refuse signals that were created longer ago, or 0; default 168h
  --beside-k0s <what>         when k0s runs its own agent: observe, refuse or replace; default observe
  --config <file>             more flags, one "name: value" a line; default /etc/refit/agent.yaml
  --log-level <level>         debug, info, warn or error; default info

Times: a number with ms, s, m or h, such as 90s.
`;

/** The file with more flags; undefined for --help. */
export function configPath(args: readonly string[]): string | undefined {
  const { help, config } = readFlags(args);
  return help === true ? undefined : resolve(config);
}

/** Undefined for --help; throws REFIT_USAGE with one line for the first mistake. */
export function parseAgentOptions(args: readonly string[]) {
  const flags = readFlags(args);
  if (flags.help === true) return undefined;
  const [empty] =
    Object.entries(flags).find(([name, value]) => value === '' && name !== 'node-configuration') ??
    [];
  if (empty !== undefined) refuse(`--${empty} is empty: give it a value, or leave it out`);
  const limits: DownloadLimits = {
    maxBytes: toCount('max-download-bytes', flags['max-download-bytes']),
    reserveBytes:
      flags['disk-reserve'] === '0' ? 0 : toCount('disk-reserve', flags['disk-reserve']),
    ...(flags['allow-insecure-redirect'] && { allowInsecureRedirect: true }),
    totalMs: toMilliseconds('download-timeout', flags['download-timeout']),
    stallMs: toMilliseconds('stall-timeout', flags['stall-timeout']),
  };
  const isKubeadm = flags.procedure === 'kubeadm';
  if (isKubeadm && flags.object !== 'node')
    refuse('--procedure kubeadm works on a Node: leave out --object');
  if (!isKubeadm && flags['kubeadm-config'] !== undefined)
    refuse('--kubeadm-config needs --procedure kubeadm');
  return {
    kubeconfig: flags.kubeconfig,
    /** Kind of the object that carries the signals: Node for workers, ControlNode for controllers. */
    object: oneOf(
      'object',
      flags.object,
      Object.keys(SIGNAL_OBJECTS) as (keyof typeof SIGNAL_OBJECTS)[],
    ),
    procedure: oneOf<Procedure>('procedure', flags.procedure, ['k0s', 'kubeadm']),
    kubeadm:
      flags['kubeadm-config'] === undefined ? {} : { config: resolve(flags['kubeadm-config']) },
    /** What Cluster API may change besides versions. */
    configurable: toAllowances(flags['node-configuration'], flags),
    /** Undefined: the name that host and service give. */
    name: flags.name,
    /** The rest is found from the running service. */
    place: {
      ...(flags['status-socket'] !== undefined && {
        statusSocket: resolve(flags['status-socket']),
      }),
      ...(flags['data-dir'] !== undefined && { dataDirectory: resolve(flags['data-dir']) }),
    },
    controller: {
      mode: flags.mode === undefined ? undefined : oneOf('mode', flags.mode, MODES),
      apiAddress: checked('api-address', flags['api-address'], isAddress, 'an IP address'),
    },
    /** Undefined: the file that the running service executes. */
    binary: flags.binary,
    stateDirectory: resolve(flags['state-dir']),
    /** Holds the lock of the host. */
    runDirectory: resolve(
      flags['run-dir'] ?? (process.getuid?.() === 0 ? '/run/refit' : flags['state-dir']),
    ),
    limits,
    times: {
      restartTimeoutMs: toMilliseconds('restart-timeout', flags['restart-timeout']),
      soakMs: flags.soak === '0' ? 0 : toMilliseconds('soak', flags.soak),
      readyTimeoutMs: toMilliseconds('ready-timeout', flags['ready-timeout']),
    },
    veto: {
      requireSha256: flags['require-sha256'],
      requireHttps: flags['require-https'],
      allowUnverified:
        oneOf('unverified-downloads', flags['unverified-downloads'], ['refuse', 'allow']) ===
        'allow',
      allowedHosts: flags['allowed-hosts']?.split(',').map((host) => host.trim().toLowerCase()),
      lowestVersion: checked(
        'lowest-version',
        flags['lowest-version'],
        isVersion,
        'a version such as v1.36.3+k0s.0',
      ),
      refuseDowngrade: flags['refuse-downgrade'],
      allowCgroupV1: flags['allow-cgroup-v1'],
      maxSignalAgeMs:
        flags['max-signal-age'] === '0'
          ? 0
          : toMilliseconds('max-signal-age', flags['max-signal-age']),
    },
    beside: oneOf<BesideK0s>('beside-k0s', flags['beside-k0s'], ['observe', 'refuse', 'replace']),
    logLevel: oneOf<LogLevel>('log-level', flags['log-level'], ['debug', 'info', 'warn', 'error']),
  };
}

/** 6 h and 60 s are the original's limits; it has no size limit, and no limit for a restart. */
function readFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        kubeconfig: { type: 'string' },
        object: { type: 'string', default: 'node' },
        name: { type: 'string' },
        procedure: { type: 'string', default: 'k0s' },
        'kubeadm-config': { type: 'string' },
        'node-configuration': { type: 'string', default: '' },
        'status-socket': { type: 'string' },
        'data-dir': { type: 'string' },
        binary: { type: 'string' },
        'state-dir': { type: 'string', default: '/var/lib/refit' },
        'run-dir': { type: 'string' },
        mode: { type: 'string' },
        'api-address': { type: 'string' },
        'max-download-bytes': { type: 'string', default: '1073741824' },
        'disk-reserve': { type: 'string', default: '134217728' },
        'allow-insecure-redirect': { type: 'boolean', default: false },
        'download-timeout': { type: 'string', default: '6h' },
        'stall-timeout': { type: 'string', default: '60s' },
        'restart-timeout': { type: 'string', default: '90s' },
        soak: { type: 'string', default: '5s' },
        'ready-timeout': { type: 'string', default: '2m' },
        'require-sha256': { type: 'boolean', default: false },
        'require-https': { type: 'boolean', default: false },
        'unverified-downloads': { type: 'string', default: 'refuse' },
        'allowed-hosts': { type: 'string' },
        'lowest-version': { type: 'string' },
        'refuse-downgrade': { type: 'boolean', default: false },
        'allow-cgroup-v1': { type: 'boolean', default: false },
        'max-signal-age': { type: 'string', default: '168h' },
        'beside-k0s': { type: 'string', default: 'observe' },
        config: { type: 'string', default: '/etc/refit/agent.yaml' },
        'log-level': { type: 'string', default: 'info' },
      },
    }).values;
  } catch (error) {
    throw usageError(error);
  }
}

const refuse = failing('REFIT_USAGE');

function toMilliseconds(flag: string, text: string): number {
  const advice = 'write a number with ms, s, m or h, such as 90s';
  return parseDuration(text) ?? refuse(`--${flag} ${text} is not a time: ${advice}`);
}

function toCount(flag: string, text: string): number {
  const count = Number(text);
  const isRight = /^\d+$/.test(text) && Number.isSafeInteger(count) && count > 0;
  return isRight ? count : refuse(`--${flag} ${text} is not a whole number above 0`);
}

function toAllowances(
  list: string,
  { object, procedure }: { object: string; procedure: string },
): string[] {
  const allowed = list.split(',').filter((text) => text !== '');
  const wrong = allowed.find(
    (text) => !isAllowance(text) || (text === 'kubelet' && procedure !== 'kubeadm'),
  );
  const rule = `${wrong}: expected user:NAME, kubelet with --procedure kubeadm, or a plain path that neither kubeadm, k0s nor Refit manages`;
  if (wrong !== undefined) refuse(`--node-configuration ${rule}`);
  if (allowed.length === 0 || object === 'node') return allowed;
  return refuse('--node-configuration works on a Node: leave out --object');
}

const isVersion = (text: string): boolean => parseVersion(text) !== undefined;

function checked(
  flag: string,
  text: string | undefined,
  isRight: (text: string) => boolean,
  wanted: string,
) {
  return text === undefined || isRight(text) ? text : refuse(`--${flag} ${text} is not ${wanted}`);
}

function oneOf<T extends string>(flag: string, text: string, choices: readonly T[]): T {
  return (
    choices.find((choice) => choice === text) ??
    refuse(`--${flag} ${text} is none of ${choices.join(', ')}`)
  );
}

/** The lines of a file of root's, one `name: value` each, as arguments; none when it is missing. Throws REFIT_FILE when others could change it. */
export async function readFlagsFile(path: string): Promise<string[]> {
  try {
    await assertTrustedPath(path);
    const args = (await readFile(path, 'utf8'))
      .split('\n')
      .flatMap((line, index) => argumentsIn(line, index + 1));
    readFlags(args);
    return args;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new RefitError('REFIT_FILE', `cannot use ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function argumentsIn(line: string, number: number): string[] {
  const text = line.replace(/(^|\s)#.*/, '').trim();
  if (text === '') return [];
  const [, name, quoted = ''] = /^([a-z][a-z0-9-]*):\s+(\S.*)$/.exec(text) ?? [];
  if (name === undefined)
    throw new Error(
      `line ${number} is "${text}": write a flag and its value, such as require-https: true`,
    );
  const value = quoted.replace(/^(["'])(.*)\1$/, '$2');
  if (value === 'false') return [];
  return [value === 'true' ? `--${name}` : `--${name}=${value}`];
}
