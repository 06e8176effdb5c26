/** Reads the environment variables of the original, with its defaults. */

import { parseGoDuration } from '../../util/go-duration.ts';
import type { Logger } from '../../util/log.ts';

/** How Jobs are rendered. */
export interface JobSettings {
  readonly activeDeadlineSeconds: number;
  /** 0 means no limit. */
  readonly activeDeadlineSecondsMax: number;
  readonly backoffLimit: number;
  readonly imagePullPolicy: string;
  readonly kubectlImage: string;
  /** If empty, Windows nodes get no Jobs. */
  readonly kubectlImageWindows: string;
  readonly privileged: boolean;
  readonly ttlSecondsAfterFinish: number;
  readonly podReplacementPolicy: string;
}

export interface CattleConfig {
  /** Used in a label of its Jobs, and as name of its lease. */
  readonly name: string;
  /** Where its Plans, Jobs and Secrets are. */
  readonly namespace: string;
  readonly job: JobSettings;
}

export const DEFAULT_JOB_SETTINGS: JobSettings = {
  activeDeadlineSeconds: 600,
  activeDeadlineSecondsMax: 0,
  backoffLimit: 2,
  imagePullPolicy: 'IfNotPresent',
  kubectlImage: 'rancher/kubectl:v1.30.3',
  kubectlImageWindows: '',
  privileged: true,
  ttlSecondsAfterFinish: 900,
  podReplacementPolicy: 'TerminatingOrFailed',
};

type Environment = Readonly<Record<string, string | undefined>>;

export function jobSettings(env: Environment, log: Logger): JobSettings {
  const read = reader(env, log, 'SYSTEM_UPGRADE_JOB_');
  const base = DEFAULT_JOB_SETTINGS;
  return {
    activeDeadlineSeconds: read('ACTIVE_DEADLINE_SECONDS', integer, base.activeDeadlineSeconds),
    activeDeadlineSecondsMax: read('ACTIVE_DEADLINE_SECONDS_MAX', integer, base.activeDeadlineSecondsMax),
    backoffLimit: read('BACKOFF_LIMIT', integer, base.backoffLimit),
    imagePullPolicy: read('IMAGE_PULL_POLICY', text, base.imagePullPolicy),
    kubectlImage: read('KUBECTL_IMAGE', text, base.kubectlImage),
    kubectlImageWindows: read('KUBECTL_IMAGE_WINDOWS', text, base.kubectlImageWindows),
    privileged: read('PRIVILEGED', flag, base.privileged),
    ttlSecondsAfterFinish: read('TTL_SECONDS_AFTER_FINISH', integer, base.ttlSecondsAfterFinish),
    podReplacementPolicy: read('POD_REPLACEMENT_POLICY', text, base.podReplacementPolicy),
  };
}

const MINUTE_MS = 60_000;

/** Milliseconds between two requests to a channel: 15 minutes, also if the value is a minute or less. */
export function pollingInterval(env: Environment, log: Logger): number {
  const read = reader(env, log, 'SYSTEM_UPGRADE_PLAN_');
  const milliseconds = read('POLLING_INTERVAL', duration, 15 * MINUTE_MS);
  return milliseconds > MINUTE_MS ? milliseconds : 15 * MINUTE_MS;
}

/** In milliseconds. */
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

function integer(value: string): number | undefined {
  return /^[+-]?\d+$/.test(value) ? Number(value) : undefined;
}

function text(value: string): string {
  return value;
}

function duration(value: string): number | undefined {
  const nanoseconds = parseGoDuration(value);
  return nanoseconds === undefined ? undefined : nanoseconds / 1e6;
}

/** Uses the default, and logs an error, for a value that cannot be parsed. Empty means not set. */
function reader(env: Environment, log: Logger, prefix: string) {
  return <T>(name: string, parse: (value: string) => T | undefined, fallback: T): T => {
    const value = env[`${prefix}${name}`];
    if (value === undefined || value === '') return fallback;
    const parsed = parse(value);
    if (parsed === undefined)
      log.error('invalid environment variable, using the default', { name: `${prefix}${name}`, value, used: fallback });
    return parsed ?? fallback;
  };
}
