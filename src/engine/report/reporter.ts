/** Reports what the engine does in the log and as Events, metrics and conditions. All reports use the same words. */
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { SilenceKeeper, SilenceState } from '../../silences/keeper.ts';
import type { Logger } from '../../util/log.ts';
import { soonest } from '../../util/soonest.ts';
import { settle, uncheckedReason } from '../assess/advance.ts';
import type { Assessment } from '../assess/assess.ts';
import { planEndOf } from '../assess/ended.ts';
import { placeOf } from '../contract/node-rollout-place.ts';
import { ownsNodeRollout } from '../contract/plan-objects.ts';
import type { Effects, Sent } from '../execute/writes.ts';
import { explain } from '../explain/explain.ts';
import { type PlanReading, readPlan } from '../explain/plan-reading.ts';
import type { NodeAction } from '../model/decision.ts';
import { planReference, titleOf } from '../model/plan-reference.ts';
import type { Reason, ReasonCode, ReportedEvent } from '../model/reasons.ts';
import * as model from '../model/rollout.ts';
import type { AwaitedRetry } from '../schedule/awaited-retries.ts';
import { actionMessage } from './action-message.ts';
import { type AnnouncerParts, createAnnouncer } from './announcer.ts';
import { writeConditions, writeStalls } from './conditions.ts';
import { endMemory } from './contradicted-ends.ts';
import { editMemory } from './edits-while-running.ts';
import {
  cleanUpEvents,
  nodeActionEvents,
  openingEvents,
  planEvents,
  restartEvent,
  retryEvents,
  signalEvents,
  targetEvents,
} from './events.ts';
import { planHookMemory } from './failed-plan-hooks.ts';
import { idleMemory } from './idle-targets.ts';
import { leftOutMemory } from './left-out-nodes.ts';
import { measurePlan, measureSteps } from './measures.ts';
import type { NodeRolloutWriter } from './node-rollout-writer.ts';
import { longAfter, standingOf } from './notifications.ts';
import type { Notifier } from './notifier.ts';
import { refusedRollBackMemory } from './refused-roll-backs.ts';
import { traceIdOf } from './spans.ts';
import type { Tracer } from './tracer.ts';
import type { Turn } from './turn.ts';
import { unsilencedMemory } from './unsilenced-alerts.ts';

/** Reports what the engine did. Only `decided` writes to the API itself; Events are sent in the background. */
export interface Reporter {
  /** Reports that the rollout `after` was recorded. */
  recorded(turn: Turn, after: model.Rollout): void;
  /** Reports that an edited plan starts again. */
  restarted(turn: Turn): void;
  /** Reports that the leader rolls the failed run of a plan back. */
  rolledBack(turn: Turn, reason: Reason): void;
  /** Reports that the next attempts of these targets were ordered. */
  retried(turn: Turn, retries: readonly AwaitedRetry[]): void;
  /** Reports the signals among `sent` that were written. */
  sent(turn: Turn, sent: readonly Sent[]): void;
  /** Reports that a node action was carried out. */
  ran(turn: Turn, nodeAction: NodeAction): void;
  /**
   * Reports the waits of the plan after a turn that has nothing left to do, and writes the conditions. Resolves with the milliseconds after
   * which there may be more to report; undefined if nothing more is expected.
   */
  decided(turn: Turn): Promise<number | undefined>;
  /** Reports that the API server refuses to change the object of a target. */
  refused(rollout: model.Rollout, at: Pick<NodeAction, 'stage' | 'target'>, reason: Reason): void;
  /** Reports that a node action for orphaned work was carried out. */
  cleared(rollout: model.Rollout, nodeAction: NodeAction): void;
  /** Reports why no decision about the plan was possible. */
  failed(plan: KubeObject, reason: Reason): void;
  /** Forgets the plan with this key, which was deleted. */
  gone(key: string): void;
}

export interface ReporterParts
  extends AnnouncerParts,
    Pick<Effects, 'client' | 'ownWrites' | 'world'> {
  readonly metrics: Metrics;
  /** Writes NodeRollouts; undefined if this process writes none. */
  readonly nodeRollouts?: Pick<NodeRolloutWriter, 'show' | 'gone'> | undefined;
  /** Sends notifications; undefined if this process sends none. */
  readonly notifier?: Pick<Notifier, 'follow' | 'forget' | 'deliveryOf'> | undefined;
  /** Silences alerts; undefined if this process silences none. */
  readonly silences?: Pick<SilenceKeeper, 'stateOf' | 'silencesOf'> | undefined;
  /** Sends traces of rollouts; undefined if this process sends none. */
  readonly tracer?: Pick<Tracer, 'follow' | 'forget'> | undefined;
}

/** Reports what a record changes. */
function reportRecorded(
  parts: ReporterParts & Pick<ReturnType<typeof createAnnouncer>, 'onPlan' | 'onTargets'>,
  { plan, assessment }: Turn,
  after: model.Rollout,
): void {
  const { dialect, metrics, tracer, onPlan, onTargets } = parts;
  const { snapshot, now } = assessment;
  const { waits } = explain(settle(assessment));
  const events = planEvents(snapshot.rollout, after, waits);
  const ours = tracer ? events.map((event) => withTrace(event, after)) : events;
  const { reporting } = dialect;
  const known = reporting?.planEvents?.(plan, dialect.project(after, plan, now), after, ours);
  for (const event of known ?? ours) onPlan(plan, event);
  for (const event of startEvents(assessment, after)) onPlan(plan, event);
  if (!known) onTargets(keyOf(plan), targetEvents(assessment, after));
  measureSteps(metrics, dialect.name, snapshot, after, tracer !== undefined);
  // The tracer must get the targets that end in this turn immediately, because their nodes may soon report about other
  // work.
  tracer?.follow({ plan, assessment }, after, waits);
  if (model.isFinal(after) && !model.isFinal(snapshot.rollout)) logEnd(parts.log, plan, after);
}

/** Returns a reporter for one term of leadership. It remembers what it has reported. */
export function createReporter(parts: ReporterParts): Reporter {
  const { dialect, metrics, nodeRollouts, notifier, tracer } = parts;
  const { onPlan, onTargets, onNodes } = createAnnouncer(parts);
  const idle = idleMemory();
  const ends = endMemory();
  const edits = editMemory();
  const joined = leftOutMemory();
  const unrolled = refusedRollBackMemory();
  const unsilenced = unsilencedMemory();
  const hooks = planHookMemory();
  const writtenAt = new Map<string, number>();
  return {
    recorded: (turn, after) => reportRecorded({ ...parts, onPlan, onTargets }, turn, after),
    restarted({ plan, assessment }) {
      const { edit } = planEndOf(assessment.snapshot, assessment.now);
      if (edit !== undefined) onPlan(plan, restartEvent(edit));
    },
    rolledBack({ plan }, reason) {
      onPlan(plan, { type: 'Warning', reason });
      metrics.rolledBack(dialect.name, keyOf(plan));
    },
    retried: ({ plan, assessment: { policy } }, retries) =>
      onTargets(keyOf(plan), retryEvents(policy.name, retries)),
    sent({ plan, assessment }, sent) {
      const written = sent
        .filter(({ result }) => result === 'written')
        .map(({ signalling }) => signalling);
      if (!dialect.reporting?.planEvents)
        onTargets(keyOf(plan), signalEvents(assessment.snapshot, written));
    },
    ran({ plan, assessment }, nodeAction) {
      parts.log.info(actionMessage(assessment, nodeAction), {
        node: nodeAction.target.name,
        plan: keyOf(plan),
      });
      onTargets(keyOf(plan), nodeActionEvents(assessment.snapshot.rollout, nodeAction));
    },
    async decided(turn) {
      const { plan, assessment } = turn;
      const { snapshot, now } = assessment;
      const { waits } = explain(settle(assessment));
      const { generation } = plan.metadata;
      const reading = readPlan(assessment, { waits, generation });
      const { stalled, rests, stalls } = idle.at(keyOf(plan), assessment);
      onTargets(keyOf(plan), stalled);
      const known = dialect.reporting?.planEvents?.(plan, plan, snapshot.rollout, rests);
      for (const event of known ?? []) onPlan(plan, event);
      const silencing = parts.silences?.stateOf(titleOf(dialect, keyOf(plan)));
      const found = [ends, joined, unrolled].map((each) => each.at(keyOf(plan), assessment));
      for (const reason of [...found, unsilenced.at(keyOf(plan), silencing)])
        if (reason) onPlan(plan, { type: 'Warning', reason });
      for (const reason of hooks.at(keyOf(plan), assessment))
        onPlan(plan, { type: 'Warning', reason });
      const edit = edits.at(keyOf(plan), turn);
      if (edit) onPlan(plan, { type: 'Normal', reason: edit });
      const tracedMs = tracer?.follow(turn, snapshot.rollout, waits);
      const shownMs = soonest([show(parts, turn, reading, silencing), tracedMs]);
      const stalledMs = soonest([shownMs, await writeStalls(parts, plan, stalls, now)]);
      measurePlan(metrics, dialect.name, turn, reading);
      if (dialect.statusRecord?.hasConditions !== false) return stalledMs;
      const onEvent = (event: ReportedEvent): void => onPlan(plan, event);
      const writing = { ...parts, onEvent, writtenAt, now };
      return soonest([stalledMs, await writeEnd(writing, turn, reading)]);
    },
    refused({ source }, { stage, target }, reason) {
      onTargets(keyOf({ metadata: source }), [{ type: 'Warning', reason, stage, target }]);
    },
    cleared: (rollout, nodeAction) => onNodes(cleanUpEvents(rollout, nodeAction)),
    failed: (plan, reason) => onPlan(plan, { type: 'Warning', reason }),
    gone(key) {
      for (const memory of [idle, ends, edits, joined, unrolled, unsilenced, hooks])
        memory.forget(key);
      writtenAt.delete(key);
      metrics.forgetPlan(dialect.name, key);
      nodeRollouts?.gone(key);
      notifier?.forget(titleOf(dialect, key));
      tracer?.forget(key);
    },
  };
}

/** The codes of the Events at the start and the end of a run. Their messages contain the id of the trace. */
const TRACED: ReadonlySet<string> = new Set<ReasonCode>(['Started', 'Completed', 'Stopped']);

function withTrace(event: ReportedEvent, after: model.Rollout): ReportedEvent {
  const { reason } = event;
  if (!TRACED.has(reason.code)) return event;
  const message = `${reason.message}; trace ${traceIdOf(after)}`;
  return { ...event, reason: { ...reason, message } };
}

/** Writes the conditions of the plan, which may still run or have ended. */
async function writeEnd(
  writing: Parameters<typeof writeConditions>[0],
  { plan, assessment: { snapshot } }: Turn,
  { end, waits }: PlanReading,
): Promise<number | undefined> {
  const shown = { ...snapshot.rollout, ...end };
  return await writeConditions(writing, plan, shown, waits);
}

/** Queues the notifications, and shows the turn in the NodeRollout. Returns the milliseconds after which both must be done again. */
function show(
  parts: ReporterParts,
  turn: Turn,
  reading: PlanReading,
  silencing: SilenceState | undefined,
): number | undefined {
  const { dialect, nodeRollouts, notifier, world } = parts;
  if (!ownsNodeRollout(dialect, turn.plan, world)) return undefined;
  const longMs = notify(parts, turn, reading);
  const title = titleOf(dialect, keyOf(turn.plan));
  const delivery = notifier?.deliveryOf(title);
  const silences = parts.silences?.silencesOf(title);
  return soonest([longMs, nodeRollouts?.show(turn, reading, { delivery, silencing, silences })]);
}

/**
 * Queues notifications for the receivers of the policy. Returns the milliseconds after which a wait is so long that the receivers get a
 * notification about it.
 */
function notify(
  { dialect, notifier }: Pick<ReporterParts, 'dialect' | 'notifier'>,
  { plan, assessment }: Turn,
  reading: PlanReading,
): number | undefined {
  const { name: policy = '', notify: receivers = [] } = assessment.policy;
  const place = placeOf(dialect, plan);
  if (notifier === undefined || place === undefined) return undefined;
  const shown = planReference({ dialect: dialect.name, ...place.subject });
  const standing = standingOf(shown, reading);
  notifier.follow(titleOf(dialect, keyOf(plan)), { plan, place, policy, receivers, standing });
  return receivers.length === 0 ? undefined : longAfter(reading.waits, reading.now);
}

/** Returns the Events about the start of a rollout without a version check, and about starts outside of the windows of the policy. */
function startEvents(assessment: Assessment, after: model.Rollout): ReportedEvent[] {
  const reason = uncheckedStart(assessment, after);
  const unchecked: ReportedEvent[] = reason ? [{ type: 'Warning', reason }] : [];
  return [...openingEvents(assessment, after), ...unchecked];
}

/**
 * Returns the reason why the versions of a rollout that starts now were not checked; undefined if they were checked, or
 * if no rollout starts now.
 */
function uncheckedStart(
  { snapshot, policy }: Assessment,
  after: model.Rollout,
): Reason | undefined {
  const begins = snapshot.rollout.phase === 'new' && after.phase === 'running';
  return begins ? uncheckedReason(snapshot, policy) : undefined;
}

function logEnd(log: Logger, plan: KubeObject, { phase }: model.Rollout): void {
  const level = phase === 'done' ? 'info' : 'warn';
  log[level]('plan ended', { plan: keyOf(plan), phase });
}
