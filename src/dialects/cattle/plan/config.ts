/** Reads the environment variables of the original, with its defaults. */
import type { Environment } from '../../../http/proxy-choice.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import type { Logger } from '../../../util/log.ts';
import { ownMember } from '../../../util/own-member.ts';

export const DEFAULT_JOB_SETTINGS = {
  activeDeadlineSeconds: 600,
  /** 0 means no limit. */
  activeDeadlineSecondsMax: 0,
  backoffLimit: 2,
  imagePullPolicy: 'IfNotPresent',
  kubectlImage: 'rancher/kubectl:v1.30.3',
  /** If empty, Windows nodes get no Jobs. */
  kubectlImageWindows: '',
  privileged: true,
  ttlSecondsAfterFinish: 900,
  podReplacementPolicy: 'TerminatingOrFailed',
  /** False: the controller cordons and drains, before the Job starts. */
  drainInJob: true,
};

export type JobSettings = Readonly<typeof DEFAULT_JOB_SETTINGS>;

export interface CattleConfig {
  /** Used in a label of its Jobs, and as name of its lease. */
  readonly name: string;
  readonly namespace: string;
  readonly job: JobSettings;
  /** As in the original: Jobs of several Plans may run on a node at once. */
  readonly plansShareNodes?: boolean;
}

/** Seconds; undefined means no deadline. */
export function deadlineOf(own: number | undefined, settings: JobSettings): number | undefined {
  const { activeDeadlineSeconds, activeDeadlineSecondsMax: max } = settings;
  const wanted = own === undefined || own < 0 ? activeDeadlineSeconds : own;
  if (wanted === 0) return max > 0 ? max : undefined;
  return max > 0 ? Math.min(wanted, max) : wanted;
}

/** `backoffLimit` is read from SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT, and so on. */
export function jobSettings(env: Environment, log: Logger): JobSettings {
  const read = reader(env, log, 'SYSTEM_UPGRADE_JOB_');
  const integer = (value: string) => (/^[+-]?\d+$/.test(value) ? Number(value) : undefined);
  const settings = Object.entries(DEFAULT_JOB_SETTINGS).map(([key, fallback]) => {
    const name = key.replaceAll(/[A-Z]/g, '_$&').toUpperCase();
    if (typeof fallback === 'number') return [key, read(name, integer, fallback)];
    return [
      key,
      typeof fallback === 'boolean'
        ? read(name, flag, fallback)
        : read(name, (value) => value, fallback),
    ];
  });
  return Object.fromEntries(settings) as JobSettings;
}

const MINUTE_MS = 60_000;

/** Milliseconds between two requests to a channel: 15 minutes, also if the value is a minute or less. */
export function pollingInterval(env: Environment, log: Logger): number {
  const read = reader(env, log, 'SYSTEM_UPGRADE_PLAN_');
  const milliseconds = read('POLLING_INTERVAL', duration, 15 * MINUTE_MS);
  return milliseconds > MINUTE_MS ? milliseconds : 15 * MINUTE_MS;
}

export function leaseTimes(env: Environment, log: Logger) {
  const read = reader(env, log, 'CATTLE_ELECTION_');
  return {
    leaseDurationMs: read('LEASE_DURATION', duration, 45_000),
    renewDeadlineMs: read('RENEW_DEADLINE', duration, 30_000),
    retryPeriodMs: read('RETRY_PERIOD', duration, 2_000),
  };
}

/** As Go reads it: `1`, `t`, `T`, `true`, `True`, `TRUE` and their opposites. */
export function flag(value: string): boolean | undefined {
  if (/^(?:1|t|T|true|True|TRUE)$/.test(value)) return true;
  return /^(?:0|f|F|false|False|FALSE)$/.test(value) ? false : undefined;
}

function duration(value: string): number | undefined {
  const nanoseconds = parseGoDuration(value);
  return nanoseconds === undefined ? undefined : nanoseconds / 1e6;
}

/** Uses the default, and logs an error, for a value that cannot be parsed. Empty means not set. */
function reader(env: Environment, log: Logger, prefix: string) {
  return <T>(name: string, parse: (value: string) => T | undefined, fallback: T): T => {
    const value = ownMember(env, `${prefix}${name}`);
    if (value === undefined || value === '') return fallback;
    const parsed = parse(value);
    if (parsed === undefined)
      log.error('invalid environment variable, using the default', {
        name: `${prefix}${name}`,
        value,
        used: fallback,
      });
    return parsed ?? fallback;
  };
}
