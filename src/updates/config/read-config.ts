/**
 * Reads an UpdateConfig. For every field that cannot work, it returns one sentence with what was found and what would
 * be right.
 */
import type { TargetSpec } from '../../api/autopilot/plan.ts';
import type { PlannedCommand, UpdateConfig } from '../../api/autopilot/update-config.ts';
import { type UpgradePolicySpec, WEEKDAYS } from '../../api/refit/upgrade-policy.ts';
import { COMMON_PREFIX } from '../../engine/model/controls.ts';
import type { Reason } from '../../engine/model/reasons.ts';
import type { Role } from '../../engine/model/rollout.ts';
import { LEAD_TIME_ANNOTATION } from '../../engine/policy/plan-windows.ts';
import { readWindow } from '../../engine/policy/read-policy.ts';
import {
  isDurationTooLong,
  LONGEST_DURATION,
  parseDuration,
  parseGoDuration,
} from '../../util/duration.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { isTimeZone, type MaintenanceWindow } from '../../util/maintenance-windows.ts';
import { ownMember } from '../../util/own-member.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { KEPT_ANNOTATIONS } from '../status.ts';
import { type CronSchedule, readCron } from './cron-schedule.ts';

/**
 * The annotation with the time zone of windows and schedules, such as `Europe/Berlin`. The default
 * is UTC.
 */
export const TIME_ZONE_ANNOTATION = 'upgrade.refit.dev/time-zone';
/**
 * The annotation says what happens after a failed Plan: `Wait` waits for a person, `Newer`
 * continues with a newer release only.
 */
export const AFTER_FAILURE_ANNOTATION = 'upgrade.refit.dev/after-failure';

/**
 * The annotation with the minimum age of a release, such as `72h`. Refit creates no Plan for a release that was
 * published more recently. If the index has no date, the age counts from the moment at which Refit saw the release
 * first.
 */
export const MINIMUM_AGE_ANNOTATION = 'upgrade.refit.dev/minimum-release-age';

const SETTINGS = [
  TIME_ZONE_ANNOTATION,
  AFTER_FAILURE_ANNOTATION,
  LEAD_TIME_ANNOTATION,
  MINIMUM_AGE_ANNOTATION,
];

export interface UpdateSettings {
  readonly channel: string;
  /** The URL of the server, without a slash at its end. */
  readonly server: string;
  readonly schedule: Schedule;
  /** The time zone of windows and schedules; undefined for UTC. */
  readonly timeZone: string | undefined;
  readonly afterFailure: 'Wait' | 'Newer';
  /**
   * The time that must pass between the publication of a release and the Plan for it; undefined if Refit does not wait.
   */
  readonly minimumAge?: { readonly text: string; readonly ms: number };
  /** The controllers and workers to upgrade; undefined for all of them. */
  readonly commands: readonly PlannedCommand[] | undefined;
}

export type Schedule = PeriodicSchedule | { readonly kind: 'cron'; readonly cron: CronSchedule };

export interface PeriodicSchedule {
  readonly kind: 'periodic';
  readonly window: MaintenanceWindow;
  /** The window in the form of an UpgradePolicy. The Plan may run only in this window. */
  readonly written: NonNullable<UpgradePolicySpec['windows']>[number];
  /** The time before the window at which nodes start their downloads; undefined if they do not download ahead. */
  readonly lead: Lead;
}

type Lead = { readonly text: string; readonly ms: number } | undefined;

type Fail = (field: string, found: unknown, advice: string) => undefined;

type Strategy = NonNullable<UpdateConfig['spec']['upgradeStrategy']>;

export interface UpdateRules {
  /** Returns the problems of the targets that a Plan will have. */
  readonly targetProblems: (
    spec: TargetSpec | undefined,
    role: Role,
    at: string,
  ) => readonly Reason[];
  /** True to allow plain http, and downloads with neither https nor a sha256, as the autopilot of k0s does. */
  readonly allowInsecure: boolean;
}

/** Returns either the settings or, if anything is wrong, only problems. */
export function readUpdateConfig(
  { metadata, spec }: UpdateConfig,
  { targetProblems, allowInsecure }: UpdateRules,
): { readonly settings?: UpdateSettings; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const fail: Fail = (field, found, advice) =>
    void problems.push(
      found === undefined
        ? `${field}: is missing${advice.replace(/^is not [^;]*(?=;)/, '').replace(/^(?=\w)/, ', ')}`
        : `${field}: ${JSON.stringify(found)} ${advice}`,
    );
  const annotations = metadata.annotations ?? {};
  for (const key of Object.keys(annotations))
    if (key.startsWith(COMMON_PREFIX) && ![...SETTINGS, ...KEPT_ANNOTATIONS].includes(key))
      problems.push(`metadata.annotations[${key}]: is unknown; use ${SETTINGS.join(', ')}`);
  const zone = annotations[TIME_ZONE_ANNOTATION] ?? 'UTC';
  const timeZone = isTimeZone(zone) ? zone : 'UTC';
  if (zone !== timeZone)
    fail(
      `metadata.annotations[${TIME_ZONE_ANNOTATION}]`,
      zone,
      'is not a time zone; use for example Europe/Berlin',
    );
  const afterFailure = annotations[AFTER_FAILURE_ANNOTATION] ?? 'Wait';
  if (afterFailure !== 'Wait' && afterFailure !== 'Newer')
    fail(
      `metadata.annotations[${AFTER_FAILURE_ANNOTATION}]`,
      afterFailure,
      'is unknown; use Wait or Newer',
    );
  const { channel = 'stable', updateServer = 'https://updates.k0sproject.io', planSpec } = spec;
  if (!/^[\w][\w.-]*(?:\/[\w][\w.-]*)*$/.test(channel))
    fail('spec.channel', channel, 'is not a channel; use for example stable');
  const server = serverOf(updateServer, allowInsecure, fail);
  const lead = lengthOf(LEAD_TIME_ANNOTATION, annotations, 'use for example 2h', fail);
  const minimumAge = lengthOf(MINIMUM_AGE_ANNOTATION, annotations, 'use for example 72h', fail);
  const schedule = scheduleOf(spec.upgradeStrategy, timeZone, lead, fail);
  for (const [index, { k0supdate, airgapupdate }] of (planSpec?.commands ?? []).entries()) {
    const at = `spec.planSpec.commands[${index}]`;
    const { controllers, workers } = k0supdate?.targets ?? {};
    if (!k0supdate && !airgapupdate) fail(at, {}, 'has no update; add k0supdate or airgapupdate');
    const wrong = [
      ...targetProblems(controllers, 'controller', `${at}.k0supdate.targets.controllers`),
      ...targetProblems(workers, 'worker', `${at}.k0supdate.targets.workers`),
      ...targetProblems(airgapupdate?.workers, 'worker', `${at}.airgapupdate.workers`),
    ];
    problems.push(...wrong.map(({ message }) => message));
  }
  if (problems.length > 0 || !schedule || !server) return { problems };
  // The autopilot of k0s treats an empty list of commands as missing.
  const commands = planSpec?.commands.length ? planSpec.commands : undefined;
  return {
    problems,
    settings: {
      channel,
      server,
      schedule,
      timeZone: timeZone === 'UTC' ? undefined : timeZone,
      afterFailure: afterFailure === 'Newer' ? 'Newer' : 'Wait',
      ...defined({ minimumAge }),
      commands,
    },
  };
}

function lengthOf(
  annotation: string,
  annotations: Readonly<Record<string, string>>,
  advice: string,
  fail: Fail,
): Lead {
  const text = ownMember(annotations, annotation);
  const ms = text === undefined ? undefined : parseDuration(text);
  if (text !== undefined && ms === undefined)
    fail(
      `metadata.annotations[${annotation}]`,
      text,
      isDurationTooLong(text)
        ? `is longer than ${LONGEST_DURATION}, the longest duration`
        : `is not a duration; ${advice}`,
    );
  return text === undefined || ms === undefined ? undefined : { text, ms };
}

export const withScheme = (server: string): string =>
  server.includes('://') ? server : `https://${server}`;

function serverOf(text: string, allowHttp: boolean, fail: Fail): string | undefined {
  const address = withScheme(text);
  const shown = printableUrl(text);
  const { protocol = '', search = '', hash = '' } = URL.parse(address) ?? {};
  // The URL class ignores white space that k0s takes as part of the address.
  if (/\s/.test(text) || !/^https?:$/.test(protocol) || search !== '' || hash !== '')
    return fail(
      'spec.updateServer',
      shown,
      'is not a server; use for example https://updates.k0sproject.io',
    );
  if (protocol === 'http:' && !allowHttp) {
    const why =
      'is plain http, so anybody on the network path can decide what runs on every node; use https';
    fail('spec.updateServer', shown, `${why}, or start the controller with --insecure-updates`);
  }
  return address.replace(/(?<!\/)\/+$/, '');
}

function scheduleOf(
  strategy: Strategy = {},
  timeZone: string,
  lead: Lead,
  fail: Fail,
): Schedule | undefined {
  const { type, cron = '', periodic } = strategy;
  if (type === 'periodic') {
    if (periodic !== undefined || cron === '') return periodicOf(strategy, timeZone, lead, fail);
    const advice = `belongs to the type cron, but the type is periodic; use type: cron, or write ${AT} with startTime and length`;
    return fail('spec.upgradeStrategy.cron', cron, advice);
  }
  if (type !== 'cron') {
    const given = periodic === undefined ? cron !== '' && 'cron' : 'periodic';
    const meant = given || 'periodic or cron';
    return fail('spec.upgradeStrategy.type', type, `is not a strategy; use ${meant}`);
  }
  // Without a schedule, k0s would look every hour, also outside of the window.
  if (cron === '' && periodic !== undefined) {
    const advice = 'although the type is cron and periodic has a window; use type: periodic';
    return fail('spec.upgradeStrategy.cron', undefined, `${advice}, or write a schedule`);
  }
  try {
    return { kind: 'cron', cron: readCron(cron || '@hourly', timeZone) };
  } catch (error) {
    return fail('spec.upgradeStrategy.cron', cron, `cannot be used: ${messageOf(error)}`);
  }
}

const AT = 'spec.upgradeStrategy.periodic';

function periodicOf(
  strategy: Strategy,
  timeZone: string,
  lead: Lead,
  fail: Fail,
): PeriodicSchedule | undefined {
  const { days = [], startTime = '', length = '' } = strategy.periodic ?? {};
  const known = days.flatMap((day, index) => {
    const found = WEEKDAYS.find((each) => each === day);
    if (found !== undefined) return found;
    const wanted = likelyDay(day) ?? WEEKDAYS.join(', ');
    fail(`${AT}.days[${index}]`, day, `is not a weekday; use ${wanted}`);
    return [];
  });
  const isTime = /^([01]?\d|2[0-3]):[0-5]\d$/.test(startTime);
  if (!isTime)
    fail(`${AT}.startTime`, startTime || undefined, 'is not a time of day; use for example 22:00');
  const lengthMs = (parseGoDuration(length) ?? 0) / 1e6;
  const start = startTime.padStart(5, '0');
  const written = {
    days: [...new Set(known)],
    start,
    length: `${Math.floor(lengthMs)}ms`,
    timeZone,
  };
  const complain = (): void =>
    fail(
      `${AT}.length`,
      length || undefined,
      'is not a duration up to 168h; use for example 2h30m',
    );
  const window = readWindow(written, '', complain);
  return window && isTime && known.length === days.length
    ? { kind: 'periodic', window, written, lead }
    : undefined;
}

/**
 * Returns the day that a person meant by a text such as `Tuesdays`, `tue` or `Tuesdsay`; undefined if no day is like it. The documentation
 * of k0s contains `Tuesdsay`.
 */
function likelyDay(text: string): string | undefined {
  const start = text.trim().slice(0, 3).toLowerCase();
  return WEEKDAYS.find((day) => day.slice(0, 3).toLowerCase() === start);
}
