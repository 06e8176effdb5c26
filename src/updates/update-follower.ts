/**
 * Follows the channel of the UpdateConfig that owns the Plan, and creates a Plan for each new release. Each term of a leader
 * has a new follower.
 */
import { idOfPlan, PLAN_NAME, type Plan, plans } from '../api/autopilot/plan.ts';
import { originOf } from '../api/autopilot/plan-origin.ts';
import { type UpdateConfig, updateConfigs } from '../api/autopilot/update-config.ts';
import { ABORT_ANNOTATION } from '../engine/model/controls.ts';
import type { RolloutPhase } from '../engine/model/rollout.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { kubeletVersionOf } from '../kube/resources.ts';
import { ifFound, isRefusal } from '../kube/status-error.ts';
import { listNodes } from '../kube/trimmed.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { ReconcileContext, ReconcileResult } from '../runtime/run-controller.ts';
import { controlNodes } from '../signal/names.ts';
import { rfc3339 } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined, sameJson } from '../util/json.ts';
import type { Logger } from '../util/log.ts';
import {
  type Channels,
  type ChannelTools,
  type Current,
  channelMemory,
} from './channel/follow-channel.ts';
import type { Release } from './channel/read-index.ts';
import { CATCH_UP_MS, type CheckPace, nextCheck, nextWindow } from './config/check-times.ts';
import { readUpdateConfig, type UpdateRules, type UpdateSettings } from './config/read-config.ts';
import { firstSeen } from './first-seen.ts';
import { type NewVersionProbe, newVersionProbe, type ProbeOptions } from './new-version.ts';
import {
  decideUpdate,
  lowestOf,
  type UpdateDecision,
  type UpdateFacts,
} from './plan/decide-update.ts';
import { makePlan } from './plan/make-plan.ts';
import { targetedWorkers } from './plan/targeted-workers.ts';
import {
  CHECK_ANNOTATION,
  printableStatus,
  statusOf,
  statusPatch,
  type UpdateStatus,
  withStatus,
} from './status.ts';

export interface UpdateParts extends ChannelTools, CheckPace, UpdateRules {
  /** This client writes only while this process leads. */
  readonly writer: KubeClient;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly phaseOf: (state: string | undefined) => RolloutPhase;
  /**
   * The options of the probe, which asks for new versions while there is no UpdateConfig; undefined if the user names
   * no server for it.
   */
  readonly probe: ProbeOptions | undefined;
}

/**
 * The finalizer of the autopilot of k0s. Refit does not need a finalizer. It removes this finalizer, so that a deleted
 * UpdateConfig disappears.
 */
const FINALIZER = 'updateconfig.autopilot.k0sproject.io';
/**
 * Milliseconds between two writes of a status that differs only in its times. A status from the future, written by a wrong
 * clock, is replaced at once.
 */
const REFRESH_MS = 60_000;
/** The reasons whose Events have type Normal. For every other reason, people should do something. */
const NORMAL: ReadonlySet<string> = new Set([
  'UpToDate',
  'UpdateStarted',
  'PlanRunning',
  'TooNew',
  'WindowClosed',
  'NotOwner',
]);

const NOT_SURVIVED =
  'the leader stopped while it asked the channel; Refit asks again at the next check';

interface Memory {
  release?: Release;
  last?: number;
  /** The last tick of the schedule, in milliseconds since the Unix epoch; undefined once the decision at that tick is carried out. */
  due?: number | undefined;
  failures: number;
  problem?: string | undefined;
  /** When each release was seen first, in RFC 3339, by version. */
  readonly seen: Map<string, string>;
  /** The generation of the UpdateConfig to which this memory belongs. */
  readonly generation: number;
}

/** `stop` aborts at the end of the leader's term. Running work may then finish its last writes, until `abort` aborts. */
type Ends = Pick<ReconcileContext, 'abort' | 'stop'>;

interface Check {
  readonly config: UpdateConfig;
  readonly settings: UpdateSettings;
  readonly cluster: Cluster;
  readonly memory: Memory;
}

type Decided = UpdateDecision & { readonly release: Release };

export class UpdateFollower {
  readonly #parts: UpdateParts;
  readonly #channels: Channels;
  readonly #memories = new Map<string, Memory>();
  readonly #probe: NewVersionProbe | undefined;

  constructor(parts: UpdateParts) {
    this.#parts = parts;
    this.#channels = channelMemory(parts);
    this.#probe = parts.probe && newVersionProbe(parts, parts.probe, this.#channels);
  }

  async followAll(all: readonly UpdateConfig[], ends: Ends): Promise<ReconcileResult> {
    const { abort } = ends;
    const live = all
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted(byAge);
    const ending = all.filter((config) => !live.includes(config));
    const released = await Promise.allSettled(
      ending.map(async (config) => await this.#release(config, abort)),
    );
    if (live.length === 0) this.#parts.metrics.keepUpdates([]);
    const current = await this.#observe(abort);
    const next =
      live.length === 0
        ? await this.#probe?.(current, abort)
        : await this.#followLive(live, current, ends);
    // If one UpdateConfig cannot be released, the other UpdateConfigs are released nevertheless. The error is thrown at
    // the end.
    for (const each of released) if (each.status === 'rejected') throw each.reason;
    return { requeueAfterMs: next };
  }

  /**
   * Follows the UpdateConfig that owns the Plan, and reports the status of all other UpdateConfigs. Resolves with the
   * milliseconds until the next check.
   */
  async #followLive(
    live: readonly UpdateConfig[],
    current: Cluster,
    ends: Ends,
  ): Promise<number | undefined> {
    const { abort } = ends;
    const read = live.map((config) => ({ config, ...readUpdateConfig(config, this.#parts) }));
    const owner = read.find(({ settings }) => settings !== undefined);
    const names = live.map(({ metadata }) => metadata.name);
    this.#parts.metrics.keepUpdates(names, owner?.config.metadata.name);
    let next = Number.POSITIVE_INFINITY;
    for (const { config, settings, problems } of read) {
      if (!settings)
        await this.#report(
          config,
          { reason: 'InvalidConfig', message: problems.join('; ') },
          abort,
        );
      else if (config === owner?.config) next = await this.#follow(config, settings, current, ends);
      else await this.#report(config, waitingFor(owner?.config), abort);
    }
    return Number.isFinite(next) ? Math.max(0, next - this.#parts.clock.now()) : undefined;
  }

  /**
   * Makes a check if one is due. Resolves with the time of the next check, in milliseconds since
   * the Unix epoch.
   */
  async #follow(
    listed: UpdateConfig,
    settings: UpdateSettings,
    cluster: Cluster,
    ends: Ends,
  ): Promise<number> {
    const { abort } = ends;
    const { clock } = this.#parts;
    let config = listed;
    const memory = this.#memoryOf(config);
    const created = Date.parse(config.metadata.creationTimestamp ?? '') || 0;
    const dueAt = (): number =>
      nextCheck(settings.schedule, { ...memory, created }, this.#parts, clock.now());
    const asked = config.metadata.annotations?.[CHECK_ANNOTATION];
    const isAsked = asked !== undefined && asked !== statusOf(config)?.obeyed;
    const isTick = dueAt() <= clock.now();
    if (isTick) memory.due = clock.now();
    // A new leader does not have the answers of the previous leader, so it makes a check at once.
    const isUnknown = !memory.release && memory.failures === 0;
    if (isAsked || isTick || isUnknown) {
      config = await this.#check({ config, settings, cluster, memory }, ends);
      this.#parts.metrics.updateChecked(
        config.metadata.name,
        clock.now() / 1000,
        memory.failures > 0,
      );
    }
    // With a periodic schedule, Plans may start at any time of a window. With a cron schedule, Plans may start only
    // within CATCH_UP_MS after a tick.
    const isTime =
      settings.schedule.kind === 'periodic' ||
      clock.now() - (memory.due ?? -Infinity) <= CATCH_UP_MS;
    // The release that the server offered before its failure may have been withdrawn meanwhile.
    const mayCreate = isTime && memory.problem === undefined;
    const decided =
      memory.release && (await this.#decide(settings, memory, memory.release, cluster, abort));
    const decision = decided?.action === 'create' && !mayCreate ? waitingForTick(decided) : decided;
    // If the UpdateConfig no longer asks for the Plan, this run ends without a report. The change of the UpdateConfig starts the next run,
    // which reports.
    if (decision?.action === 'create' && !(await this.#isStillAsked(config, abort))) return dueAt();
    try {
      if (decision?.action === 'create')
        await this.#start(
          makePlan(config, settings, decision.release, cluster.plan),
          cluster,
          abort,
        );
      if (decision?.action === 'abort') await this.#withdraw(decision.message, cluster, abort);
    } catch (error) {
      const message = `the API server refuses to change the Plan: ${messageOf(error)}`;
      if (isRefusal(error)) await this.#report(config, { reason: 'CheckFailed', message }, abort);
      throw error;
    }
    memory.due = undefined;
    const next = Math.min(dueAt(), decision?.until ?? Number.POSITIVE_INFINITY);
    const { reason, message } =
      decision && memory.problem === undefined
        ? decision
        : { reason: 'CheckFailed', message: memory.problem ?? '' };
    const window = nextWindow(settings.schedule, clock.now());
    const times = defined({
      checkedAt: memory.last === undefined ? undefined : rfc3339(memory.last),
      nextCheck: Number.isFinite(next) ? rfc3339(next) : undefined,
      nextWindow: window === undefined ? undefined : rfc3339(window),
      current: cluster.version || undefined,
      available: memory.release?.version,
      seen: memory.seen.size === 0 ? undefined : Object.fromEntries(memory.seen),
      ...failuresOf(memory),
    });
    await this.#report(config, { reason, message, ...times }, abort);
    return next;
  }

  /** Asks the channel. Resolves with the UpdateConfig as it is stored afterwards. */
  async #check(
    { config, settings, cluster, memory }: Check,
    { abort, stop = abort }: Ends,
  ): Promise<UpdateConfig> {
    // Before the first answer, this leader records the attempt, because the parsing of an answer
    // might end the process.
    const isFirst = !memory.release;
    const stored = isFirst ? await this.#reportAttempt(config, memory, abort) : config;
    memory.last = this.#parts.clock.now();
    const asking = AbortSignal.any([abort, stop]);
    try {
      memory.release = await this.#channels.ask(settings, cluster, asking);
      memory.failures = 0;
      memory.problem = undefined;
    } catch (error) {
      // If the end of the term interrupted the check, the channel has not failed. The leader then writes the former
      // status back.
      if (isFirst && stop.aborted) await this.#write(config, statusOf(config), abort);
      asking.throwIfAborted();
      memory.failures++;
      memory.problem = messageOf(error);
    }
    return stored;
  }

  /**
   * Decides what to do. If the channel is more than one minor version ahead, it first asks for a
   * release in between.
   */
  async #decide(
    settings: UpdateSettings,
    memory: Memory,
    release: Release,
    cluster: Cluster,
    abort: AbortSignal,
  ): Promise<Decided> {
    const { client, clock, phaseOf, allowInsecure } = this.#parts;
    const { versions, plan } = cluster;
    const running = (await listNodes(client, { abort })).items;
    const kubelets = targetedWorkers(running, settings).map((node) => kubeletVersionOf(node) ?? '');
    const facts = {
      settings,
      versions,
      kubelets,
      plan,
      phaseOf,
      allowUnverified: allowInsecure,
      now: clock.now(),
    };
    const seenMs = (each: Release): number => firstSeen(memory, settings, each, clock.now());
    const decision = decideUpdate({ ...facts, release, seenMs: seenMs(release) });
    if (decision.action !== 'ask' || decision.minor === undefined) return { ...decision, release };
    try {
      const between = await this.#channels.ask(settings, cluster, abort, decision.minor);
      const step = { ...between, withdrawn: { ...between.withdrawn, ...release.withdrawn } };
      const { action, ...rest } = decideUpdate({ ...facts, release: step, seenMs: seenMs(step) });
      return action === 'ask'
        ? { ...decision, action: 'none', release }
        : { action, ...rest, release: step };
    } catch (error) {
      abort.throwIfAborted();
      return {
        ...decision,
        action: 'none',
        message: `${decision.message} (${messageOf(error)})`,
        release,
      };
    }
  }

  /**
   * Reads the UpdateConfig again, because the informer may be late. An UpdateConfig that was deleted or changed in the
   * meantime starts no Plan. Without this check, a Plan of Refit could replace the Plan of a user who deletes the
   * UpdateConfig and then the Plan.
   */
  async #isStillAsked({ metadata }: UpdateConfig, abort: AbortSignal): Promise<boolean> {
    const { name, uid, generation } = metadata;
    const fieldSelector = `metadata.name=${name}`;
    const { items } = await this.#parts.client.listAll(updateConfigs, { fieldSelector, abort });
    const stored = items.find((item) => item.metadata.name === name)?.metadata;
    return (
      stored?.uid === uid &&
      stored?.generation === generation &&
      stored?.deletionTimestamp === undefined
    );
  }

  /**
   * Creates the Plan, or replaces the previous Plan. Rejects if the previous Plan has changed, or if another Plan
   * exists. The next decision follows within seconds and takes that into account.
   */
  async #start(plan: Plan, { plan: previous }: Cluster, abort: AbortSignal): Promise<void> {
    const { writer, log } = this.#parts;
    if (previous) {
      const { uid, resourceVersion } = previous.metadata;
      await ifFound(
        writer.delete(plans, PLAN_NAME, { ...defined({ uid, resourceVersion }), abort }),
      );
    }
    const created = await writer.create(plans, plan, { abort });
    log.info('created a Plan', { ...originOf(plan), id: idOfPlan(created) });
  }

  async #withdraw(reason: string, { plan }: Cluster, abort: AbortSignal): Promise<void> {
    if (!plan || plan.metadata.annotations?.[ABORT_ANNOTATION] !== undefined) return;
    const { uid, resourceVersion } = plan.metadata;
    const metadata = { uid, resourceVersion, annotations: { [ABORT_ANNOTATION]: reason } };
    await this.#parts.writer.patch(plans, PLAN_NAME, { metadata }, { type: 'merge', abort });
  }

  /**
   * Counts the check as failed before it begins, so that the count includes a check that kills the leader. Resolves with the
   * UpdateConfig as it is stored afterwards.
   */
  async #reportAttempt(
    config: UpdateConfig,
    memory: Memory,
    abort: AbortSignal,
  ): Promise<UpdateConfig> {
    const before = statusOf(config) ?? { reason: 'CheckFailed', message: NOT_SURVIVED };
    const attempt = { ...memory, failures: memory.failures + 1 };
    const checkedAt = rfc3339(this.#parts.clock.now());
    const status = { ...before, checkedAt, ...failuresOf(attempt) };
    await this.#write(config, status, abort);
    return withStatus(config, status);
  }

  /** Writes the status, or removes it if it is undefined. */
  async #write(
    { metadata: { name } }: UpdateConfig,
    status: UpdateStatus | undefined,
    abort: AbortSignal,
  ): Promise<void> {
    const { writer } = this.#parts;
    await ifFound(writer.patch(updateConfigs, name, statusPatch(status), { type: 'merge', abort }));
  }

  /** Writes the status if it changed, and an Event if the reason changed. */
  async #report(config: UpdateConfig, verdict: UpdateStatus, abort: AbortSignal): Promise<void> {
    const { events, metrics, log, clock } = this.#parts;
    const { name, annotations } = config.metadata;
    const obeyed = annotations?.[CHECK_ANNOTATION];
    const status = printableStatus(defined({ seen: statusOf(config)?.seen, ...verdict, obeyed }));
    metrics.update(name, status.reason, status.current ?? '', status.available ?? '');
    const before = statusOf(config);
    const isNew = before?.reason !== status.reason || before.message !== status.message;
    // If the time of the next check in the stored status has passed, the status is written at once. Otherwise people
    // would read "now" as the time of the next check for up to a minute.
    const isFresh =
      Math.abs(clock.now() - Date.parse(before?.checkedAt ?? '')) < REFRESH_MS &&
      !(Date.parse(before?.nextCheck ?? '') <= clock.now());
    const lasting = ({
      checkedAt: _c,
      nextCheck: _n,
      nextWindow: _w,
      ...rest
    }: UpdateStatus): unknown => rest;
    if (
      before &&
      (sameJson(before, status) || (isFresh && sameJson(lasting(before), lasting(status))))
    )
      return;
    await this.#write(config, status, abort);
    if (!isNew) return;
    const { reason, message } = status;
    log.info('update', { config: name, reason, message });
    events.record(config, { type: NORMAL.has(reason) ? 'Normal' : 'Warning', reason, message });
  }

  async #release({ metadata }: UpdateConfig, abort: AbortSignal): Promise<void> {
    const { name, finalizers = [], resourceVersion } = metadata;
    if (!finalizers.includes(FINALIZER)) return;
    const patch = {
      metadata: { resourceVersion, finalizers: finalizers.filter((each) => each !== FINALIZER) },
    };
    await ifFound(this.#parts.writer.patch(updateConfigs, name, patch, { type: 'merge', abort }));
  }

  #memoryOf({ metadata: { uid = '', generation = 0, ...metadata } }: UpdateConfig): Memory {
    const known = this.#memories.get(uid);
    if (known?.generation === generation) return known;
    const status = statusOf({ metadata, spec: {} });
    const checked = Date.parse(status?.checkedAt ?? '');
    const failures = status?.generation === generation ? (status.failures ?? 0) : 0;
    const message = status?.reason === 'CheckFailed' ? status.message : NOT_SURVIVED;
    const memory: Memory = {
      failures,
      generation,
      problem: failures > 0 ? message : undefined,
      seen: new Map(known?.seen ?? Object.entries(status?.seen ?? {})),
      ...(known || Number.isNaN(checked) ? {} : { last: checked }),
    };
    this.#memories.set(uid, memory);
    return memory;
  }

  async #observe(abort: AbortSignal): Promise<Cluster> {
    const { client } = this.#parts;
    const [plan, controllers] = await Promise.all([
      ifFound(client.get(plans, PLAN_NAME, { abort })),
      client.listAll(controlNodes, { abort }),
    ]);
    const versions = controllers.items.map(({ status }) => status?.k0sVersion ?? '');
    return {
      plan,
      versions,
      version: lowestOf(versions)?.text ?? '',
      planState: plan?.status?.state ?? '',
    };
  }
}

function failuresOf({ failures, generation }: Memory): Partial<UpdateStatus> {
  return failures > 0 ? { failures, generation } : {};
}

type Cluster = Current & Pick<UpdateFacts, 'plan' | 'versions'>;

/** Compares two UpdateConfigs by age, the older one first, because the oldest UpdateConfig owns the Plan. */
function byAge(a: UpdateConfig, b: UpdateConfig): number {
  return timeAndName(a) < timeAndName(b) ? -1 : 1;
}

function timeAndName({ metadata: { creationTimestamp = '', name } }: UpdateConfig): string {
  return `${creationTimestamp} ${name}`;
}

/** Returns the status of an UpdateConfig that does not act, because `owner` owns the Plan. */
function waitingFor(owner: UpdateConfig | undefined): UpdateStatus {
  const name = owner?.metadata.name;
  const message = `UpdateConfig ${name} is older and owns the Plan; delete one of the two`;
  return { reason: 'NotOwner', message };
}

function waitingForTick(decided: Decided): Decided {
  const message = `${decided.release.version} waits for the next tick of the schedule`;
  return { ...decided, action: 'none', reason: 'WindowClosed', message };
}
