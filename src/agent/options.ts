/** Turns the flags of the agent into its options, and refuses invalid values. */
import { resolve } from 'node:path';
import type { Procedure } from '../signal/agent-presence.ts';
import { SIGNAL_OBJECTS } from '../signal/names.ts';
import { isAllowance } from '../signal/node-configuration.ts';
import {
  isDurationTooLong,
  LONGEST_DURATION,
  parseDuration,
  parseDurationOrZero,
} from '../util/duration.ts';
import { failing } from '../util/errors.ts';
import type { LogLevel } from '../util/log.ts';
import { parseVersion } from '../util/version.ts';
import type { DownloadLimits } from './download/fetch.ts';
import { type FlagValues, readFlags } from './flags.ts';
import { type ControllerMode, isAddress } from './registration/control-node.ts';
import type { PlaceFlags } from './service/service-place.ts';
import type { BesideK0s, Times } from './step-input.ts';
import type { Veto } from './veto.ts';

/** The checked options of `refit agent`. Paths are absolute. */
export interface AgentOptions {
  readonly kubeconfig: FlagValues['kubeconfig'];
  /** The kind of the object that carries the signals of this host. */
  readonly object: keyof typeof SIGNAL_OBJECTS;
  readonly procedure: Procedure;
  readonly kubeadm: { readonly config?: string };
  /** The changes that UpdaterSets may make on this host, in the form of `--node-configuration`. */
  readonly configurable: readonly string[];
  readonly name: FlagValues['name'];
  readonly place: PlaceFlags;
  readonly controller: RegistrationFlags;
  readonly binary: FlagValues['binary'];
  readonly stateDirectory: string;
  readonly runDirectory: string;
  readonly limits: DownloadLimits;
  readonly times: Times;
  /** The rules of this host. They apply to every signal, whatever it contains. */
  readonly veto: Veto;
  /** True if no Plan of k0s may include this host. */
  readonly excluded: boolean;
  readonly beside: BesideK0s;
  readonly logLevel: LogLevel;
}

/** The values with which a controller is registered if the service does not report its own values. */
export interface RegistrationFlags {
  readonly mode: ControllerMode | undefined;
  readonly apiAddress: string | undefined;
}

const ROLES = ['controller', 'worker'] as const;
const MODES: readonly ControllerMode[] = ['controller', 'controller+worker'];

/** Returns undefined for --help. Throws REFIT_USAGE with one line for the first mistake. */
export function parseAgentOptions(args: readonly string[]): AgentOptions | undefined {
  const flags = readFlags(args);
  if (flags.help === true) return undefined;
  const [empty] =
    Object.entries(flags).find(([name, value]) => value === '' && name !== 'node-configuration') ??
    [];
  if (empty !== undefined) refuse(`--${empty} is empty: give it a value, or leave it out`);
  const isKubeadm = flags.procedure === 'kubeadm';
  if (isKubeadm && flags.object !== 'node')
    refuse('--procedure kubeadm works on a Node: leave out --object');
  if (!isKubeadm && flags['kubeadm-config'] !== undefined)
    refuse('--kubeadm-config needs --procedure kubeadm');
  return {
    kubeconfig: flags.kubeconfig,
    object: oneOf(
      'object',
      flags.object,
      Object.keys(SIGNAL_OBJECTS) as (keyof typeof SIGNAL_OBJECTS)[],
    ),
    procedure: oneOf<Procedure>('procedure', flags.procedure, ['k0s', 'kubeadm']),
    kubeadm:
      flags['kubeadm-config'] === undefined ? {} : { config: resolve(flags['kubeadm-config']) },
    configurable: toAllowances(flags['node-configuration'], flags),
    name: flags.name,
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
    binary: flags.binary,
    stateDirectory: resolve(flags['state-dir']),
    runDirectory: resolve(
      flags['run-dir'] ?? (process.getuid?.() === 0 ? '/run/refit' : flags['state-dir']),
    ),
    limits: limitsIn(flags),
    times: {
      restartTimeoutMs: toMilliseconds('restart-timeout', flags['restart-timeout']),
      soakMs: toMillisecondsOrZero('soak', flags.soak),
      readyTimeoutMs: toMilliseconds('ready-timeout', flags['ready-timeout']),
    },
    veto: vetoIn(flags),
    excluded: isExcluded(flags),
    beside: oneOf<BesideK0s>('beside-k0s', flags['beside-k0s'], ['observe', 'refuse', 'replace']),
    logLevel: oneOf<LogLevel>('log-level', flags['log-level'], ['debug', 'info', 'warn', 'error']),
  };
}

function limitsIn(flags: FlagValues): DownloadLimits {
  return {
    maxBytes: toCount('max-download-bytes', flags['max-download-bytes']),
    reserveBytes:
      flags['disk-reserve'] === '0' ? 0 : toCount('disk-reserve', flags['disk-reserve']),
    ...(flags['allow-insecure-redirect'] && { allowInsecureRedirect: true }),
    totalMs: toMilliseconds('download-timeout', flags['download-timeout']),
    stallMs: toMilliseconds('stall-timeout', flags['stall-timeout']),
  };
}

/** Returns the rules of this host. They apply to every signal, whatever it contains. */
function vetoIn(flags: FlagValues): Veto {
  return {
    requireSha256: flags['require-sha256'],
    requireHttps: flags['require-https'],
    allowUnverified:
      oneOf('unverified-downloads', flags['unverified-downloads'], ['refuse', 'allow']) === 'allow',
    allowedHosts: flags['allowed-hosts']?.split(',').map((host) => host.trim().toLowerCase()),
    lowestVersion: checked(
      'lowest-version',
      flags['lowest-version'],
      isVersion,
      'a version such as v1.36.3+k0s.0',
    ),
    refuseDowngrade: flags['refuse-downgrade'],
    allowCgroupV1: flags['allow-cgroup-v1'],
    maxSignalAgeMs: toMillisecondsOrZero('max-signal-age', flags['max-signal-age']),
  };
}

/** Returns true if `--exclude-from-plans` names the role of this host. */
function isExcluded({
  'exclude-from-plans': list,
  object,
  procedure,
}: Pick<FlagValues, 'exclude-from-plans' | 'object' | 'procedure'>): boolean {
  if (list === undefined) return false;
  if (procedure === 'kubeadm') refuse('--exclude-from-plans works with Plans of k0s only');
  const roles = list.split(',').map((role) => oneOf('exclude-from-plans', role, ROLES));
  return roles.includes(object === 'controlnode' ? 'controller' : 'worker');
}

const refuse = failing('REFIT_USAGE');

const TIME = 'a number with ms, s, m or h, such as 90s';

function toMilliseconds(flag: string, text: string): number {
  return toTime(flag, text, parseDuration(text), `write ${TIME}`);
}

/** Works like `toMilliseconds`, for a flag with which 0 switches something off. */
function toMillisecondsOrZero(flag: string, text: string): number {
  return toTime(flag, text, parseDurationOrZero(text), `write 0, or ${TIME}`);
}

function toTime(flag: string, text: string, time: number | undefined, advice: string): number {
  if (isDurationTooLong(text))
    refuse(`--${flag} ${text} is too long: the longest time is ${LONGEST_DURATION}`);
  return time ?? refuse(`--${flag} ${text} is not a time: ${advice}`);
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
