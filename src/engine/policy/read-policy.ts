/** Reads an UpgradePolicy into a RolloutPolicy, which has a problem for every invalid field. */
import {
  type UpgradePolicy,
  type UpgradePolicySpec,
  upgradePolicySpecSchema,
  WEEKDAYS,
} from '../../api/refit/upgrade-policy.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import { EVERY_CONTROLLER, type JobNamespaces } from '../../kube/job-namespaces.ts';
import { selectorFault } from '../../kube/selectors.ts';
import type { AgentDrain, AgentPolicy, AgentSnapshot } from '../../signal/annotations.ts';
import { describeIssue } from '../../util/describe-issue.ts';
import { formatDuration, parseDuration } from '../../util/duration.ts';
import { ifPossible } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import {
  type Blackout,
  isTimeZone,
  type MaintenanceWindow,
} from '../../util/maintenance-windows.ts';
import { parseVersion } from '../../util/version.ts';
import { because, type Reason } from '../model/reasons.ts';
import { checkJobPlaces } from './job-namespace-problems.ts';
import { healthIn } from './read-health.ts';
import { hooksIn } from './read-hooks.ts';
import { receiversIn } from './read-notify.ts';
import { podRulesIn } from './read-pod-rules.ts';
import { silencesIn } from './read-silences.ts';
import { type Complain, readTime, readTimeOrZero } from './read-time.ts';
import {
  DEFAULT_POLICY,
  type DrainPolicy,
  hooksMs,
  type NodeLimit,
  type RolloutPolicy,
  restartDeadline,
  sumOf,
  type TimedStep,
  type WaveRule,
} from './rollout-policy.ts';

/**
 * Returns the policy with defaults for absent fields. If a field is invalid, nothing starts under
 * the policy, and `problems` names each such field. A command that knows no controller leaves `jobs` out.
 */
export function readPolicy(
  { metadata: { name }, spec }: UpgradePolicy,
  jobs: JobNamespaces = EVERY_CONTROLLER,
): RolloutPolicy {
  const checked = upgradePolicySpecSchema.safeParse(spec, { reportInput: true });
  const problems = (checked.error?.issues ?? []).map((issue) =>
    problem(name, describeIssue({ ...issue, path: ['spec', ...issue.path] }, 'spec')),
  );
  if (!checked.success) {
    // It is unknown what an invalid policy allows. If a drain misses its deadline, only its target fails, because the
    // policy may forbid everything else. For the same reason, no number of failures stops the rollout.
    const drain = { ...DEFAULT_POLICY.drain, onDeadline: 'skip' } as const;
    const heldBy = `the drain under UpgradePolicy ${name}, which cannot be read,`;
    return { ...DEFAULT_POLICY, name, problems, maxFailures: Infinity, drain, heldBy };
  }
  const complain: Complain = (field, wanted, found) =>
    problems.push(problem(name, `spec.${field} must be ${wanted}; found ${JSON.stringify(found)}`));
  checkJobPlaces(checked.data, jobs, complain);
  return { ...policyOf(checked.data, complain), name, problems };
}

function problem(name: string, what: string): Reason {
  return because('PolicyUnreadable', `UpgradePolicy ${name}: ${what}`);
}

function policyOf(
  spec: UpgradePolicySpec,
  complain: Complain,
): Omit<RolloutPolicy, 'name' | 'problems'> {
  const { stepDeadlines, targetDeadlineMs, settleMs, agent: agentTimes } = timesOf(spec, complain);
  const { agent: agentRules, ...payloadRules } = payloadRulesOf(spec, complain);
  const hooks = spec.hooks && hooksIn(spec.hooks, complain, spec.drain?.enabled !== false);
  const waits = drainWaitsOf(spec.drain ?? {}, stepDeadlines.drain, complain);
  const drain = drainOf(spec.drain ?? {}, waits, complain);
  const drainMs =
    spec.deadlines?.drain === undefined ? Number.POSITIVE_INFINITY : stepDeadlines.drain;
  return {
    paused: spec.paused ?? false,
    ...budgetOf(spec),
    ...retryOf(spec, complain),
    ...orderOf(spec, complain),
    ...(spec.maxBlockedNodes === undefined ? {} : { maxBlocked: spec.maxBlockedNodes }),
    ...(spec.maxUnavailable === undefined ? {} : { maxUnavailable: limitOf(spec.maxUnavailable) }),
    // The time of the hooks is added to the deadline, because the deadline starts with the intent and hooks run after it.
    targetDeadlineMs: targetDeadlineMs + hooksMs({ hooks }),
    ...(hooks === undefined ? {} : { hooks }),
    stepDeadlines,
    ...(settleMs === undefined ? {} : { settleMs }),
    drain,
    ...defined({ health: healthIn(spec, complain) }),
    ...(spec.notify === undefined ? {} : { notify: receiversIn(spec.notify, complain) }),
    ...(spec.silences === undefined ? {} : { silences: silencesIn(spec.silences, complain) }),
    windows: (spec.windows ?? []).flatMap(
      (window, index) => readWindow(window, `windows[${index}]`, complain) ?? [],
    ),
    blackouts: (spec.blackouts ?? []).flatMap(
      (one, index) => readBlackout(one, `blackouts[${index}]`, complain) ?? [],
    ),
    allow: new Set(spec.versions?.allow),
    ...pinsOf(spec.versions?.pin, complain),
    ...(spec.versions?.verify === 'None' ? { trustsSuccess: true } : {}),
    ...(spec.virtualNodes === 'Count' ? { countsVirtual: true } : {}),
    ...payloadRules,
    requireAgent: spec.agents?.require === 'Refit',
    restartsEdited: spec.edits?.afterEnd === 'Restart',
    ...(spec.controllersNotReady === 'End' ? { endsNotReady: true } : {}),
    ...(spec.edits?.whileRunning === 'Ignore' ? { ignoresEdits: true } : {}),
    ...defined({ coordinate: spec.coordinate }),
    ...(spec.nodeConditions === true ? { nodeConditions: true } : {}),
    ...(spec.newNodes === 'Include' ? { includesNew: true } : {}),
    ...(spec.holds === 'Finish' ? { leavesOutHeld: true } : {}),
    ...(spec.goneNodes === 'Skip' ? { leavesOutGone: true } : {}),
    prefetch: lower(spec.prefetch) ?? DEFAULT_POLICY.prefetch,
    agent: { ...agentTimes, ...agentRules, ...agentDrainOf(drain, drainMs) },
  };
}

/**
 * Returns how many targets may fail, as a number or as a percentage. The number for a percentage is computed later for
 * each plan.
 */
function budgetOf({ failureBudget = 0, maxConsecutiveFailures, onFailure }: UpgradePolicySpec) {
  const limit = limitOf(failureBudget);
  return {
    ...('nodes' in limit
      ? { maxFailures: limit.nodes }
      : { maxFailures: 0, maxFailuresPercent: limit.percent }),
    ...defined({ maxConsecutiveFailures }),
    ...(onFailure === 'Pause' ? { pausesOnFailure: true } : {}),
    ...(onFailure === 'RollBack' ? { rollsBackOnFailure: true } : {}),
  };
}

type PinSpec = NonNullable<NonNullable<UpgradePolicySpec['versions']>['pin']>[number];

/**
 * Returns the pins. Calls `complain` if two pins with the same selector name different versions, because both pins
 * select the same nodes. If the selectors differ, only the labels of a node show whether both pins select it.
 */
function pinsOf(
  pins: readonly PinSpec[] | undefined,
  complain: Complain,
): Pick<RolloutPolicy, 'pins'> {
  if (pins === undefined) return {};
  const known = new Map<string, { index: number; version: string }>();
  for (const [index, { selector, version }] of pins.entries()) {
    const at = `versions.pin[${index}]`;
    const fault = selectorFault(selector);
    if (fault !== undefined) complain(`${at}.selector`, 'a label selector', fault);
    if (parseVersion(version) === undefined)
      complain(`${at}.version`, 'a version such as v1.36.3', version);
    const same = known.getOrInsert(JSON.stringify(selector), { index, version });
    if (same.version !== version)
      complain(
        `${at}.version`,
        `${same.version} as in spec.versions.pin[${same.index}], which selects the same nodes`,
        version,
      );
  }
  return { pins };
}

const DEFAULT_BACKOFF_MS = 5 * 60 * 1000;

/** Returns how failed targets are tried again. One attempt is the same as no retry. */
function retryOf({ retry }: UpgradePolicySpec, complain: Complain): Pick<RolloutPolicy, 'retry'> {
  if (retry === undefined) return {};
  const backoffMs = readTime('retry.backoff', retry.backoff, complain) ?? DEFAULT_BACKOFF_MS;
  return { retry: { attempts: retry.attempts, backoffMs } };
}

/** Returns the rules that say which targets come first. */
function orderOf({ order, waves, spread, perDomain }: UpgradePolicySpec, complain: Complain) {
  return {
    ...defined({ order, spread }),
    ...(waves === undefined
      ? {}
      : {
          waves: waves.map((wave, index) =>
            readWave(wave, `waves[${index}]`, index === waves.length - 1, complain),
          ),
        }),
    ...(perDomain === undefined
      ? {}
      : { perDomain: { label: perDomain.label, limit: limitOf(perDomain.maxUnavailable) } }),
  };
}

type Wave = NonNullable<UpgradePolicySpec['waves']>[number];

function readWave(wave: Wave, at: string, isLast: boolean, complain: Complain): WaveRule {
  const { selector, count, percent, settle, failureBudget, approval } = wave;
  const hasSize = [selector, count, percent].some((each) => each !== undefined);
  if (!hasSize && !isLast)
    complain(at, 'the last wave, because it has neither selector, count nor percent', wave);
  const fault = selector && selectorFault(selector);
  if (fault !== undefined) complain(`${at}.selector`, 'a label selector', fault);
  if ([selector, count, percent].filter((each) => each !== undefined).length > 1)
    complain(at, 'a wave with at most one of selector, count and percent', wave);
  const settleMs = readTime(`${at}.settle`, settle, complain);
  return defined({
    selector,
    count,
    percent,
    settleMs,
    maxFailures: failureBudget === undefined ? undefined : limitOf(failureBudget),
    needsApproval: needsApproval(approval, at, complain),
  }) as WaveRule;
}

/** Returns true if the wave needs approval, and undefined if it does not. An unknown word counts as a need for approval. */
function needsApproval(approval: Wave['approval'], at: string, complain: Complain) {
  if (approval === undefined || approval === 'None') return undefined;
  if (approval !== 'Manual') complain(`${at}.approval`, 'None or Manual', approval);
  return true;
}

function timesOf(spec: UpgradePolicySpec, complain: Complain) {
  const { deadlines = {}, drain, soak, settle, keepPrevious } = spec;
  const read = (field: string, text: string | undefined) => readTime(field, text, complain);
  const step = (name: TimedStep): number =>
    read(`deadlines.${name}`, deadlines[name]) ?? DEFAULT_POLICY.stepDeadlines[name];
  const restartTimeoutMs = read('deadlines.restart', deadlines.restart);
  const soakMs = readTimeOrZero('soak', soak, complain);
  const keepPreviousMs = readTimeOrZero('keepPrevious', keepPrevious, complain);
  const settleMs = read('settle', settle);
  const ready = step('ready');
  const answer = step('answer');
  const download = step('download');
  const agent: AgentPolicy = defined({
    soakMs,
    keepPreviousMs,
    etcdSnapshot: snapshotRulesOf(spec, complain),
    restartTimeoutMs,
    readyTimeoutMs: deadlines.ready === undefined ? undefined : ready,
    downloadTimeoutMs: deadlines.download === undefined ? undefined : download,
  });
  const stepDeadlines = {
    answer,
    download,
    drain: drain?.onDeadline === 'Wait' ? Number.POSITIVE_INFINITY : step('drain'),
    apply: step('apply'),
    restart: restartDeadline(ready, agent),
    ready,
  };
  return {
    stepDeadlines,
    targetDeadlineMs:
      read('deadlines.target', deadlines.target) ?? sumOf(stepDeadlines) + (settleMs ?? 0),
    settleMs,
    agent,
  };
}

function snapshotRulesOf({ etcdSnapshot }: UpgradePolicySpec, complain: Complain) {
  if (etcdSnapshot === undefined) return undefined;
  const { mode, keep, timeout, certificate } = etcdSnapshot;
  const timeoutMs = readTime('etcdSnapshot.timeout', timeout, complain);
  const rules = { require: mode === 'Require' || undefined, keep, timeoutMs };
  return defined({ ...rules, certificate: certificate?.trim() }) as AgentSnapshot;
}

function payloadRulesOf({ payloads = {} }: UpgradePolicySpec, complain: Complain) {
  const {
    requireSha256 = DEFAULT_POLICY.requireSha256,
    requireHttps = DEFAULT_POLICY.requireHttps,
  } = payloads;
  const diskReserveBytes =
    payloads.diskReserveMiB === undefined ? undefined : payloads.diskReserveMiB * 1024 * 1024;
  const agent: AgentPolicy = defined({ requireHttps: requireHttps || undefined, diskReserveBytes });
  const downloadProblemMs = readTimeOrZero(
    'payloads.problemTimeout',
    payloads.problemTimeout,
    complain,
  );
  const requireImageDigest = payloads.requireImageDigest === true || undefined;
  const optional = defined({ downloadProblemMs, requireImageDigest });
  return { requireSha256, requireHttps, agent, ...optional };
}

function limitOf(value: number | string): NodeLimit {
  return typeof value === 'number' ? { nodes: value } : { percent: Number(value.slice(0, -1)) };
}

/** Returns a value of the policy in lower case, as the engine spells it; undefined if the value is absent. */
const lower = <T extends string>(choice: T | undefined) =>
  choice?.toLowerCase() as Lowercase<T> | undefined;

type DrainSpec = NonNullable<UpgradePolicySpec['drain']>;

function deadlineRuleOf(choice: NonNullable<UpgradePolicySpec['drain']>['onDeadline']) {
  return choice === 'SkipNode' ? 'skipNode' : lower(choice);
}

/**
 * Returns the times that a drain waits before and after the evictions. Calls `complain` for a time that is so long that
 * no time is left for the evictions.
 */
function drainWaitsOf(
  { waitForJobs, loadBalancers, volumes }: DrainSpec,
  deadlineMs: number,
  complain: Complain,
): DrainWaits {
  const read = (field: string, text: string | undefined): number | undefined => {
    const ms = readTime(field, text, complain);
    if (ms !== undefined && ms >= deadlineMs)
      complain(
        field,
        `shorter than spec.deadlines.drain, which is ${formatDuration(deadlineMs)}`,
        text,
      );
    return ms;
  };
  const graceMs = read('drain.loadBalancers.grace', loadBalancers?.grace);
  const detachMs = read('drain.volumes.timeout', volumes?.timeout);
  return defined({
    detachMs: volumes?.waitForDetach === true ? (detachMs ?? DETACH_MS) : undefined,
    jobsWaitMs: read('drain.waitForJobs', waitForJobs),
    graceMs: loadBalancers?.exclude === true ? (graceMs ?? GRACE_MS) : undefined,
  });
}

type DrainWaits = Pick<DrainOptions, 'jobsWaitMs' | 'graceMs' | 'detachMs'>;

/** The default time that load balancers have to stop sending traffic to a node, in milliseconds. */
const GRACE_MS = 30_000;

/** Milliseconds that a drain waits by default for volumes to detach. */
const DETACH_MS = 2 * 60_000;

/** Calls `complain` if the drain sets a grace period and uses EvictionRequests, because an EvictionRequest cannot hold a grace period. */
function checkRequests(
  { evictionRequests, gracePeriodSeconds }: DrainSpec,
  complain: Complain,
): void {
  if (evictionRequests === 'Use' && gracePeriodSeconds !== undefined)
    complain(
      'drain.gracePeriodSeconds',
      'absent, because an EvictionRequest (spec.drain.evictionRequests) cannot contain a grace period',
      gracePeriodSeconds,
    );
}

/**
 * Returns true if workers start in the order of how many of their pods PodDisruptionBudgets cover, with the smallest
 * number first. Calls `complain` if nodes are not drained, because then no pod is evicted.
 */
function startsWithFewest({ startWith, enabled }: DrainSpec, complain: Complain): boolean {
  if (startWith !== undefined && enabled === false)
    complain('drain.startWith', 'absent, because spec.drain.enabled is false', startWith);
  return startWith === 'FewestBudgetPods';
}

function drainOf(drain: DrainSpec, waits: DrainWaits, complain: Complain): DrainPolicy {
  const { onDeadline, uncordon, ...defaults } = DEFAULT_POLICY.drain;
  const { gracePeriodSeconds } = drain;
  checkRequests(drain, complain);
  return {
    enabled: drain.enabled ?? defaults.enabled,
    options: {
      localData: drain.deleteEmptyDirData === false ? 'refuse' : 'evict',
      unmanagedPods: drain.force === false ? 'refuse' : 'evict',
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(drain.pods === undefined ? {} : { podRules: podRulesIn(drain.pods, complain) }),
      ...(drain.order === 'PriorityClass' ? { byPriority: true } : {}),
      ...(drain.evictionRequests === 'Use' ? { evictionRequests: true } : {}),
      ...waits,
    },
    ...(startsWithFewest(drain, complain) ? { startsWithFewest: true } : {}),
    ...(waits.graceMs === undefined ? {} : { excludes: true }),
    onDeadline: deadlineRuleOf(drain.onDeadline) ?? onDeadline,
    ...(drain.zeroDisruptionBudgets === 'Wait' ? { waitsForBudgets: true } : {}),
    softTaint: drain.softTaint ?? defaults.softTaint,
    uncordon: lower(drain.uncordon) ?? uncordon,
  };
}

/**
 * Milliseconds that are added to the deadline of a drain if the node drains itself. So the leader, if there is one,
 * ends the drain before the node does.
 */
const LEADER_FIRST_MS = 60_000;

/** Returns the drain options for a node that drains itself, as far as they differ from the agent's defaults. */
function agentDrainOf(
  { enabled, uncordon, options }: DrainPolicy,
  deadlineMs: number,
): Pick<AgentPolicy, 'drain'> {
  const { localData, unmanagedPods, gracePeriodSeconds } = options;
  const drain: AgentDrain = {
    ...(enabled ? {} : { enabled }),
    ...(localData === 'refuse' ? { localData } : {}),
    ...(unmanagedPods === 'refuse' ? { unmanagedPods } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
    ...(Number.isFinite(deadlineMs) ? { timeoutMs: deadlineMs + LEADER_FIRST_MS } : {}),
    ...(uncordon === 'always' ? { uncordon } : {}),
  };
  return Object.keys(drain).length === 0 ? {} : { drain };
}

type Window = NonNullable<UpgradePolicySpec['windows']>[number];
type Stretch = NonNullable<UpgradePolicySpec['blackouts']>[number];

/** Reads a window. Returns undefined if a field is invalid, after calling `complain` for it. */
export function readWindow(
  window: Window,
  at: string,
  complain: Complain,
): MaintenanceWindow | undefined {
  const { days = [], start, length, timeZone } = window;
  const lengthMs = parseDuration(length);
  const isLength = lengthMs !== undefined && lengthMs <= 168 * 3_600_000;
  if (!isLength) complain(`${at}.length`, 'a time above zero and up to 168h, such as 4h', length);
  if (!isKnown(timeZone, at, complain) || !isLength) return undefined;
  const [hour = 0, minute = 0] = start.split(':').map(Number);
  return {
    days: days.map((day) => WEEKDAYS.indexOf(day) + 1),
    startMinute: hour * 60 + minute,
    lengthMs,
    timeZone,
  };
}

/** Reads a blackout. Returns undefined if a field is invalid, after calling `complain` for it. */
export function readBlackout(
  stretch: Stretch,
  at: string,
  complain: Complain,
): Blackout | undefined {
  const { timeZone = 'UTC' } = stretch;
  const isZone = isKnown(timeZone, at, complain);
  const zone = isZone ? timeZone : 'UTC';
  const from = momentOf(stretch.from, zone, 0);
  if (from === undefined) complain(`${at}.from`, MOMENT, stretch.from);
  // The last day belongs to the blackout. So a date means the start of the day after this date.
  const to = momentOf(stretch.to, zone, 1);
  if (to === undefined) complain(`${at}.to`, MOMENT, stretch.to);
  if (from === undefined || to === undefined) return undefined;
  // Whether a date is before a time depends on the time zone. If the time zone is invalid, this order is unknown, so it
  // is not checked.
  const isComparable = isZone || stretch.from.includes('T') === stretch.to.includes('T');
  const isOrdered = from < to;
  if (!isOrdered && isComparable) complain(`${at}.to`, `after ${stretch.from}`, stretch.to);
  return isZone && isOrdered ? { from, to } : undefined;
}

const MOMENT = 'a date of the calendar such as 2026-12-20, or a time such as 2026-12-20T18:00:00Z';

function isKnown(timeZone: string, at: string, complain: Complain): boolean {
  const known = isTimeZone(timeZone);
  if (!known) complain(`${at}.timeZone`, 'a time zone such as Europe/Berlin', timeZone);
  return known;
}

/**
 * Returns the time in milliseconds since the Unix epoch; undefined if the text is no time. A date means the start of
 * the day that is `daysAfter` days later.
 */
function momentOf(text: string, timeZone: string, daysAfter: number): number | undefined {
  return ifPossible(() => {
    if (text.includes('T')) return Temporal.Instant.from(text).epochMilliseconds;
    return Temporal.PlainDate.from(text).add({ days: daysAfter }).toZonedDateTime(timeZone)
      .epochMilliseconds;
  });
}
