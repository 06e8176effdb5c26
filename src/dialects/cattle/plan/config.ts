/** Reads the environment variables of Rancher's system-upgrade-controller, with the same defaults. */

import { faultOfLabelName } from '../../../api/names.ts';
import type { Environment } from '../../../http/proxy-choice.ts';
import { listedNamespaces } from '../../../kube/job-namespaces.ts';
import { selectorFault } from '../../../kube/selectors.ts';
import { isPageUrl, PAGE_URL_ADVICE } from '../../../notify/receivers.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import { RefitError } from '../../../util/errors.ts';
import { ADDRESS_ADVICE, partsOfAddress } from '../../../util/listen.ts';
import type { Logger } from '../../../util/log.ts';
import { ownMember } from '../../../util/own-member.ts';
import { printableUrl } from '../../../util/printable-url.ts';

export const DEFAULT_JOB_SETTINGS = {
  activeDeadlineSeconds: 600,
  /** The longest deadline of a Job in seconds; 0 means that there is no limit. */
  activeDeadlineSecondsMax: 0,
  backoffLimit: 2,
  imagePullPolicy: 'IfNotPresent',
  kubectlImage: 'rancher/kubectl:v1.30.3',
  /** The image of kubectl for Windows nodes. If it is empty, Windows nodes get no Jobs. */
  kubectlImageWindows: '',
  privileged: true,
  ttlSecondsAfterFinish: 900,
  podReplacementPolicy: 'TerminatingOrFailed',
  /** If false, the controller cordons and drains the node before the Job starts. */
  drainInJob: true,
};

export type JobSettings = Readonly<typeof DEFAULT_JOB_SETTINGS>;

export interface CattleConfig {
  /** The name of the controller. It is the value of a label of its Jobs, and the name of its Lease. */
  readonly name: string;
  readonly namespace: string;
  readonly job: JobSettings;
  /** If true, Jobs of several Plans may run on a node at once, as in the original. */
  readonly plansShareNodes?: boolean;
  /** Further images that install K3s or RKE2, such as mirrors with other names. */
  readonly installers?: readonly string[];
  /** If false, no rule about versions applies, as in the original. */
  readonly checksVersions?: boolean;
  /** Returns the version of the API server that this process uses; undefined if it is not known yet. */
  readonly apiServerVersion?: () => string | undefined;
}

/** Returns the deadline of a Job in seconds; undefined means that it has no deadline. */
export function deadlineOf(own: number | undefined, settings: JobSettings): number | undefined {
  const { activeDeadlineSeconds, activeDeadlineSecondsMax: max } = settings;
  const wanted = own === undefined || own < 0 ? activeDeadlineSeconds : own;
  if (wanted === 0) return max > 0 ? max : undefined;
  return max > 0 ? Math.min(wanted, max) : wanted;
}

/** Reads each setting from the variable with its name, such as `backoffLimit` from SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT. */
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

const CONTROLLER = 'SYSTEM_UPGRADE_CONTROLLER_';

/** Returns the value of a boolean variable of the controller; false if it is not set. */
export function isSet(env: Environment, name: string, log: Logger): boolean {
  return reader(env, log, CONTROLLER)(name, flag, false);
}

/**
 * Returns the name and namespace of the controller, the URL of its API server and the address of its health checks.
 * Throws REFIT_USAGE if a variable is missing or has a value that the controller cannot use.
 */
export function controllerSettings(env: Environment) {
  const value = (name: string): string | undefined =>
    ownMember(env, `${CONTROLLER}${name}`) || undefined;
  const required = (name: string): string => value(name) ?? refuse(name, 'is not set');
  const settings = {
    name: required('NAME'),
    namespace: required('NAMESPACE'),
    server: value('MASTER_URL')?.replace(/(?<!\/)\/+$/, ''),
    healthAddress: value('HEALTH_ADDRESS'),
    apiPort: portIn(value('API_PORT')),
    sender: { cluster: value('CLUSTER_NAME'), pageUrl: value('UI_URL') },
  };
  const { name, namespace, server, healthAddress, sender } = settings;
  if (name.trim() === '' || selectorFault({ matchLabels: { name } }) !== undefined)
    refuse(
      'NAME',
      `is ${JSON.stringify(name)}, expected the value of a label: at most 63 letters, digits, "-", "_" and "."`,
    );
  const fault = faultOfLabelName(namespace);
  if (fault !== undefined) refuse('NAMESPACE', `is ${JSON.stringify(namespace)}, but ${fault}`);
  if (server !== undefined && !(/^https?:/.test(server) && URL.canParse(server)))
    refuse('MASTER_URL', `is not an http or https URL: ${printableUrl(server)}`);
  if (healthAddress !== undefined && partsOfAddress(healthAddress) === undefined)
    refuse('HEALTH_ADDRESS', `is ${JSON.stringify(healthAddress)}: ${ADDRESS_ADVICE}`);
  if (sender.pageUrl !== undefined && !isPageUrl(sender.pageUrl))
    refuse('UI_URL', `is ${printableUrl(sender.pageUrl)}: ${PAGE_URL_ADVICE}`);
  return settings;
}

/** The port of the API server on each server of K3s and RKE2. A controller in a pod only knows the port of the Service. */
const SERVER_PORT = 6443;

function portIn(text: string | undefined): number {
  if (text === undefined) return SERVER_PORT;
  const port = Number(text);
  return /^\d+$/.test(text) && port >= 1 && port <= 65_535
    ? port
    : refuse('API_PORT', `is ${JSON.stringify(text)}, expected a port from 1 to 65535`);
}

/**
 * Returns the namespaces in which Jobs of policies may run; undefined if the variable is not set. Throws REFIT_USAGE if
 * a namespace cannot be listed. The original has no such variable.
 */
export function listedJobNamespaces(env: Environment): readonly string[] | undefined {
  const text = ownMember(env, `${CONTROLLER}JOB_NAMESPACES`);
  if (text === undefined) return undefined;
  const names = listedNamespaces(text, [controllerSettings(env).namespace]);
  return typeof names === 'string' ? refuse('JOB_NAMESPACES', `is wrong: ${names}`) : names;
}

function refuse(name: string, what: string): never {
  throw new RefitError('REFIT_USAGE', `${CONTROLLER}${name} ${what}`, {
    hint: 'set a valid value in the environment of the process',
  });
}

/**
 * Returns whether the rules about versions apply, and which further images install K3s or RKE2. The names of the images
 * are separated by commas or spaces.
 */
export function versionSettings(
  env: Environment,
  log: Logger,
): Required<Pick<CattleConfig, 'installers' | 'checksVersions'>> {
  const read = reader(env, log, 'SYSTEM_UPGRADE_');
  const names = (text: string): readonly string[] =>
    text.split(/[\s,]+/).filter((name) => name !== '');
  return {
    installers: read('INSTALLER_IMAGES', names, []),
    checksVersions: read('REFIT_CHECKS', flag, true),
  };
}

const MINUTE_MS = 60_000;

/**
 * Returns the milliseconds between two requests to a channel. The original uses 15 minutes for a value of a minute or
 * less.
 */
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

/**
 * Parses a boolean as Go does: `1`, `t`, `T`, `true`, `True`, `TRUE` and their opposites; undefined
 * for any other text.
 */
export function flag(value: string): boolean | undefined {
  if (/^(?:1|t|T|true|True|TRUE)$/.test(value)) return true;
  return /^(?:0|f|F|false|False|FALSE)$/.test(value) ? false : undefined;
}

function duration(value: string): number | undefined {
  const nanoseconds = parseGoDuration(value);
  return nanoseconds === undefined ? undefined : nanoseconds / 1e6;
}

/**
 * Returns a function that reads a variable. The function returns `fallback` for an empty variable. It also returns
 * `fallback` for a value that cannot be parsed, and then logs an error.
 */
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
