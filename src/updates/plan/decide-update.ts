/**
 * Decides what to do about the release that a channel offers. The decision is pure: the same input gives every leader the same
 * answer.
 */

import type { Plan } from '../../api/autopilot/plan.ts';
import { originOf } from '../../api/autopilot/plan-origin.ts';
import type { RolloutPhase } from '../../engine/model/rollout.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { openAt, timeWithZone } from '../../util/maintenance-windows.ts';
import { ownMember } from '../../util/own-member.ts';
import {
  compareVersions,
  compareVersionTexts,
  parseVersion,
  type Version,
} from '../../util/version.ts';
import { brokenStep } from '../../versions/kubeadm-rules.ts';
import type { Release } from '../channel/read-index.ts';
import { MINIMUM_AGE_ANNOTATION, type UpdateSettings } from '../config/read-config.ts';

/** Says in one word what is done, or why nothing is done. Events, metrics and `refit updates` use these words. */
export type UpdateReason =
  | 'UpToDate'
  | 'NotUpgraded'
  | 'Downgrade'
  | 'Withdrawn'
  | 'ForeignPlan'
  | 'PlanRunning'
  | 'PlanFailed'
  | 'SkippedMinor'
  | 'NoDownload'
  | 'Unverified'
  | 'TooNew'
  | 'WindowClosed'
  | 'VersionUnknown'
  | 'UpdateStarted';

export interface UpdateDecision {
  /**
   * create: creates a Plan for the release. abort: aborts the running Plan. ask: asks for the newest release of `minor` first.
   */
  readonly action: 'none' | 'create' | 'abort' | 'ask';
  readonly reason: UpdateReason;
  readonly message: string;
  /** The next minor version, such as `v1.37`. */
  readonly minor?: string;
  /**
   * The time at which the decision changes by itself, without a change of the cluster or the channel. In milliseconds
   * since the Unix epoch.
   */
  readonly until?: number;
}

export interface UpdateFacts {
  readonly settings: UpdateSettings;
  readonly release: Release;
  /** The versions that all controllers run now. */
  readonly versions: readonly string[];
  /** The kubelet versions of the workers that the UpdateConfig selects. They do not include the build of k0s. */
  readonly kubelets: readonly string[];
  readonly plan: Plan | undefined;
  readonly phaseOf: (state: string | undefined) => RolloutPhase;
  /**
   * The time at which Refit saw the release first, in milliseconds since the Unix epoch; undefined if Refit has not
   * recorded it.
   */
  readonly seenMs?: number | undefined;
  /** True to allow downloads with neither https nor a sha256, as the autopilot of k0s does. */
  readonly allowUnverified: boolean;
  /** The current time in milliseconds since the Unix epoch. */
  readonly now: number;
}

export function decideUpdate(facts: UpdateFacts): UpdateDecision {
  const { release, plan, phaseOf } = facts;
  const wanted = parseVersion(release.version);
  const lowest = lowestOf(facts.versions);
  if (!wanted || !lowest)
    return none('VersionUnknown', 'the controllers report no version that Refit can read');
  const origin = plan && originOf(plan);
  const phase = plan && phaseOf(plan.status?.state);
  const isRunning = isOpenPlan({ phase });
  const withdrawn = origin && ownMember(release.withdrawn, origin.version);
  if (isRunning && withdrawn !== undefined)
    return {
      action: 'abort',
      reason: 'Withdrawn',
      message: `release ${origin?.version} was withdrawn: ${withdrawn}`,
    };
  // The channel may now offer an older release than the release of the Plan. If this Plan is not finished, the code
  // must first decide about the Plan.
  const ahead = compareVersionTexts(origin?.version, release.version);
  const isHalfDone = ahead > 0 && phase !== 'done' && withdrawn === undefined;
  const own = plan && (ahead === 0 || isHalfDone) ? planVerdict(facts, plan) : undefined;
  if (own) return own;
  const order = compareVersions(wanted, lowest.version);
  const behind = order === 0 ? workerBehind(facts, wanted) : lowest.text;
  if (behind === undefined)
    return none(
      'UpToDate',
      `the controllers run ${lowest.text}, the newest release of the channel`,
    );
  const back = `the channel offers ${release.version}, and the controllers run ${lowest.text}: Refit never downgrades by itself`;
  if (order < 0) return none('Downgrade', back);
  const gone = ownMember(release.withdrawn, release.version);
  if (gone !== undefined)
    return none('Withdrawn', `release ${release.version} was withdrawn: ${gone}`);
  return (
    (plan && planVerdict(facts, plan)) ??
    stepVerdict(lowest.version, wanted) ??
    downloadVerdict(facts) ??
    buildVerdict(facts, wanted) ??
    ageVerdict(facts) ??
    windowVerdict(facts) ?? {
      action: 'create',
      reason: 'UpdateStarted',
      message: `upgrading from ${behind} to ${release.version}`,
    }
  );
}

/** Returns the version of a worker that is older than the release; undefined if no worker is older. */
function workerBehind(
  { kubelets }: Pick<UpdateFacts, 'kubelets'>,
  wanted: Version,
): string | undefined {
  const read = kubelets.map((text) => ({ text, version: parseVersion(text) }));
  return read.find(
    ({ version }) => version && compareVersions(version, { ...wanted, build: '' }) < 0,
  )?.text;
}

/** Returns a decision if the existing Plan forbids a new Plan; undefined if a new Plan is allowed. */
function planVerdict(facts: UpdateFacts, plan: Plan): UpdateDecision | undefined {
  const { release, settings, phaseOf } = facts;
  const { name } = plan.metadata;
  const origin = originOf(plan);
  const phase = phaseOf(plan.status?.state);
  const foreign = `Plan ${name} was written by somebody else, and Refit never overwrites it; once it has ended, delete it to let ${release.version} start`;
  if (!origin) return none('ForeignPlan', foreign);
  const order = compareVersionTexts(release.version, origin.version);
  if (isOpenPlan({ phase })) {
    const later = order > 0 ? `; ${release.version} comes afterwards` : '';
    return none('PlanRunning', `Plan ${name} upgrades to ${origin.version}${later}`);
  }
  if (phase === 'done')
    return order === 0
      ? (leftBehind(facts, plan) ??
          none('UpToDate', `Plan ${name} has installed ${release.version}`))
      : undefined;
  const failed = `the Plan for ${origin.version} ended as ${plan.status?.state}`;
  const retry = 'run `refit retry` for each failed node';
  const twice = `${failed}, and the same release is never tried twice; correct the cause and ${retry}, or delete Plan ${name}`;
  if (order === 0) return none('PlanFailed', twice);
  const mayFollow =
    settings.afterFailure === 'Newer' || ownMember(release.withdrawn, origin.version) !== undefined;
  if (order > 0 && mayFollow) return undefined;
  const then = order > 0 ? `delete Plan ${name} to let ${release.version} start` : retry;
  return none('PlanFailed', `${failed}; correct the cause and ${then}`);
}

/** Milliseconds after the end of the Plan in which nodes may still report their old version. */
const REPORT_MS = 120_000;

/**
 * Returns a decision if the Plan for this release has ended although a node runs an older version;
 * undefined otherwise.
 */
function leftBehind(facts: UpdateFacts, plan: Plan): UpdateDecision | undefined {
  const { release, versions, now } = facts;
  const wanted = parseVersion(release.version);
  const lowest = lowestOf(versions);
  if (!wanted || !lowest) return undefined;
  const worker = workerBehind(facts, wanted);
  const isControllerBehind = compareVersions(lowest.version, wanted) < 0;
  if (!isControllerBehind && worker === undefined) return undefined;
  const { name } = plan.metadata;
  const until = endOf(plan) + REPORT_MS;
  if (now < until)
    return {
      ...none('PlanRunning', `Plan ${name} has ended; its nodes report their version soon`),
      until,
    };
  const who = isControllerBehind
    ? `a controller still runs ${lowest.text}`
    : `a worker still runs ${worker}`;
  // The remedy depends on whether a controller or a worker has the old version. A selected worker has an old version if
  // it joined the cluster later, or if the rollout left it out.
  const remedy = isControllerBehind
    ? `check that the targets in spec.planSpec select all controllers, then delete Plan ${name}`
    : `delete Plan ${name}; the next Plan then upgrades that worker, which joined after the Plan or was not upgraded by it`;
  return none(
    'NotUpgraded',
    `Plan ${name} for ${release.version} has ended, but ${who}: ${remedy}`,
  );
}

/**
 * Returns the time at which the Plan ended, in milliseconds since the Unix epoch. A Plan without targets has no such
 * time. The result is then -Infinity, which means that the Plan ended long ago.
 */
function endOf({ status }: Plan): number {
  const targets = (status?.commands ?? []).flatMap(({ k0supdate = {} }) => [
    ...(k0supdate.controllers ?? []),
    ...(k0supdate.workers ?? []),
  ]);
  const times = targets.map(({ lastUpdatedTimestamp }) => Date.parse(lastUpdatedTimestamp));
  return Math.max(...times.filter((time) => !Number.isNaN(time)), Number.NEGATIVE_INFINITY);
}

/** Returns a decision if the update would skip a minor version; undefined if it would not. */
function stepVerdict(from: Version, to: Version): UpdateDecision | undefined {
  const broken = brokenStep(from, to);
  if (!broken) return undefined;
  const minor = `v${from.major}.${from.minor + 1}`;
  const message = `the controllers ${broken.message}: the channel would have to offer a release of ${minor} first`;
  return {
    action: 'ask',
    reason: 'SkippedMinor',
    message,
    ...(to.major === from.major ? { minor } : {}),
  };
}

/**
 * Returns a decision if the release has no build, such as `+k0s.0`; undefined if it has one, or if every update is
 * forced. No node reports a version without a build, so the leader refuses such a Plan.
 */
function buildVerdict(
  { release, settings }: UpdateFacts,
  { build }: Version,
): UpdateDecision | undefined {
  const { commands } = settings;
  const isCompared =
    commands?.some(({ k0supdate }) => k0supdate && k0supdate.forceupdate !== true) ?? true;
  return build === '' && isCompared
    ? none(
        'VersionUnknown',
        `the channel offers ${release.version}, which has no build such as +k0s.0, so no node can report it: the index must have the whole version of the release`,
      )
    : undefined;
}

function downloadVerdict({
  release,
  settings,
  allowUnverified,
}: UpdateFacts): UpdateDecision | undefined {
  const { commands = [{ k0supdate: {} }] } = settings;
  for (const kind of ['k0s', 'airgap'] as const) {
    if (
      !commands.some((command) =>
        kind === 'k0s' ? 'k0supdate' in command : 'airgapupdate' in command,
      )
    )
      continue;
    const files = Object.entries(release[kind]);
    const what = kind === 'k0s' ? 'k0s binary' : 'image bundle';
    if (files.length === 0)
      return none('NoDownload', `the index has no ${what} of ${release.version}`);
    const bad = files.find(([, { url, sha256 }]) => sha256 === undefined && !/^https:/i.test(url));
    const unproven = `the ${what} of ${release.version} for ${bad?.[0]} has neither https nor a sha256 in the index`;
    if (bad && !allowUnverified) return none('Unverified', unproven);
  }
  return undefined;
}

/** Returns a decision while the release is younger than the UpdateConfig allows; undefined once it is old enough. */
function ageVerdict({
  settings: { minimumAge, timeZone },
  release: { version, publishedMs },
  seenMs,
  now,
}: UpdateFacts): UpdateDecision | undefined {
  if (minimumAge === undefined) return undefined;
  // A publication date in the future would delay the release for longer than the minimum age. So the age counts at the
  // latest from the time at which Refit saw the release first, or from now if that time is unknown.
  const since = Math.min(publishedMs ?? seenMs ?? now, seenMs ?? now);
  const until = since + minimumAge.ms;
  if (until <= now) return undefined;
  const how = publishedMs === undefined ? 'seen first' : 'published';
  const message = `${version} waits until ${timeWithZone(until, timeZone)}, ${minimumAge.text} after it was ${how}, as ${MINIMUM_AGE_ANNOTATION} says`;
  return { ...none('TooNew', message), until };
}

function windowVerdict({
  settings: { schedule, timeZone },
  release,
  now,
}: UpdateFacts): UpdateDecision | undefined {
  if (schedule.kind === 'cron') return undefined;
  const opening = openAt({ windows: [schedule.window], blackouts: [] }, now);
  // In the lead time nodes only download, and the Plan itself waits for the window.
  const leadMs = schedule.lead?.ms ?? 0;
  if (opening.open || opening.opensAt - now <= leadMs) return undefined;
  const message = `${release.version} waits for the window, which opens at ${timeWithZone(opening.opensAt, timeZone)}`;
  return { ...none('WindowClosed', message), until: opening.opensAt - leadMs };
}

/** Returns the lowest version; undefined if the list is empty, or if a version cannot be parsed. */
export function lowestOf(versions: readonly string[]) {
  const read = versions.map((text) => ({ text, version: parseVersion(text) }));
  // A version that cannot be parsed could be the lowest.
  const known = read.flatMap(({ text, version }) => (version ? [{ text, version }] : []));
  if (known.length < read.length) return undefined;
  return known.toSorted((a, b) => compareVersions(a.version, b.version))[0];
}

function none(reason: UpdateReason, message: string): UpdateDecision {
  return { action: 'none', reason, message };
}
