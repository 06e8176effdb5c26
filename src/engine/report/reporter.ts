/** Reports what the engine does: in the log, as Events, metrics and conditions, in the same words. */
import { type KubeObject, keyOf, nodes } from '../../kube/resources.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { LogFields, Logger } from '../../util/log.ts';
import { uncheckedReason } from '../assess/advance.ts';
import { type Assessment, phaseOf } from '../assess/assess.ts';
import { planEndOf } from '../assess/ended.ts';
import { settle } from '../assess/settle.ts';
import type { Effects, Sent } from '../execute/writes.ts';
import { explain } from '../explain/explain.ts';
import { factsOf } from '../gates/types.ts';
import {
  type NodeAction,
  PLAN_PHASES,
  type Snapshot,
  type TargetPhase,
  type Wait,
} from '../model/decision.ts';
import { isUnasked, type Reason, type ReportedEvent } from '../model/reasons.ts';
import * as model from '../model/rollout.ts';
import { writeConditions, writeStalls } from './conditions.ts';
import {
  cleanUpEvents,
  nodeActionEvents,
  planEvents,
  restartEvent,
  signalEvents,
  type TargetEvent,
  targetEvents,
} from './events.ts';

/** One assessment of a plan. */
export interface Turn {
  readonly plan: KubeObject;
  readonly assessment: Assessment;
}

export type Reporter = ReturnType<typeof createReporter>;

export interface ReporterParts extends Pick<Effects, 'dialect' | 'client' | 'world' | 'ownWrites'> {
  readonly log: Logger;
  readonly metrics: Metrics;
  /** `object` is the plan, a Node or what stands for a target. */
  recordEvent(object: KubeObject, announcement: ReportedEvent): void;
}

export function createReporter(parts: ReporterParts) {
  const { dialect, world, metrics } = parts;
  const log = ({ type, reason }: ReportedEvent, fields: LogFields): void =>
    parts.log[type === 'Warning' ? 'warn' : 'info'](reason.message, {
      ...fields,
      reason: reason.code,
    });
  const onPlan = (plan: KubeObject, event: ReportedEvent): void => {
    log(event, { plan: keyOf(plan) });
    parts.recordEvent(plan, event);
  };
  const onTargets = (plan: string, events: readonly TargetEvent[]): void => {
    for (const { stage, target, ...event } of events) {
      const object = dialect.objectOf(stage, target, world);
      if (object) parts.recordEvent(object, event);
      log(event, { plan, node: target.name });
    }
  };
  const held = heldMemory();
  const ends = endMemory();
  const writtenAt = new Map<string, number>();
  return {
    recorded({ plan, assessment }: Turn, after: model.Rollout): void {
      const { snapshot, policy, now } = assessment;
      const { waits } = explain(settle(assessment));
      const ours = planEvents(snapshot.rollout, after, waits);
      const known = dialect.planEvents?.(plan, dialect.project(after, plan, now), after, ours);
      for (const event of known ?? ours) onPlan(plan, event);
      const begins = snapshot.rollout.phase === 'new' && after.phase === 'running';
      const reason = begins ? uncheckedReason(snapshot, policy) : undefined;
      if (reason) onPlan(plan, { type: 'Warning', reason });
      if (!known) onTargets(keyOf(plan), targetEvents(assessment, after));
      measureSteps(metrics, dialect.name, snapshot, after);
      if (!model.isFinal(after) || model.isFinal(snapshot.rollout)) return;
      const level = after.phase === 'done' ? 'info' : 'warn';
      parts.log[level]('plan ended', { plan: keyOf(plan), phase: after.phase });
    },
    restarted({ plan, assessment }: Turn): void {
      const { edit } = planEndOf(assessment.snapshot, assessment.now);
      if (edit !== undefined) onPlan(plan, restartEvent(edit));
    },
    sent({ plan, assessment }: Turn, sent: readonly Sent[]): void {
      const written = sent
        .filter(({ result }) => result === 'written')
        .map(({ signalling }) => signalling);
      if (!dialect.planEvents)
        onTargets(keyOf(plan), signalEvents(assessment.snapshot.rollout, written));
    },
    ran({ plan, assessment }: Turn, nodeAction: NodeAction): void {
      parts.log.info(actionMessage(assessment, nodeAction), {
        node: nodeAction.target.name,
        plan: keyOf(plan),
      });
      onTargets(keyOf(plan), nodeActionEvents(assessment.snapshot.rollout, nodeAction));
    },
    /** Nothing is left to do now. Resolves with the milliseconds after which there may be more to report. */
    async decided(turn: Turn): Promise<number | undefined> {
      const { plan, assessment } = turn;
      const { snapshot, now } = assessment;
      const { waits } = explain(settle(assessment));
      const { stalled, rests, stalls } = held.at(keyOf(plan), assessment);
      onTargets(keyOf(plan), stalled);
      for (const event of dialect.planEvents?.(plan, plan, snapshot.rollout, rests) ?? [])
        onPlan(plan, event);
      const end = ends.at(keyOf(plan), assessment);
      if (end) onPlan(plan, { type: 'Warning', reason: end });
      const stalledMs = await writeStalls(parts, plan, stalls, now);
      measurePlan(metrics, dialect.name, turn, waits);
      if (dialect.statusRecord !== 'without-conditions') return stalledMs;
      const writing = {
        ...parts,
        onEvent: (event: ReportedEvent) => onPlan(plan, event),
        writtenAt,
        now,
      };
      const shown = { ...snapshot.rollout, ...planEndOf(snapshot, now) };
      return await writeConditions(writing, plan, shown, waits);
    },
    /** The API server refuses to change the object of a target. */
    refused(
      { source }: model.Rollout,
      { stage, target }: Pick<NodeAction, 'stage' | 'target'>,
      reason: Reason,
    ): void {
      onTargets(keyOf({ metadata: source }), [{ type: 'Warning', reason, stage, target }]);
    },
    cleared(rollout: model.Rollout, nodeAction: NodeAction): void {
      for (const { node, ...event } of cleanUpEvents(rollout, nodeAction)) {
        const object = world.get(nodes, node);
        if (object) parts.recordEvent(object, event);
        log(event, { node });
      }
    },
    failed: (plan: KubeObject, reason: Reason) => onPlan(plan, { type: 'Warning', reason }),
    gone(key: string): void {
      held.forget(key);
      ends.forget(key);
      writtenAt.delete(key);
      metrics.forgetPlan(dialect.name, key);
    },
  };
}

const MESSAGES = {
  cordon: 'node cordoned',
  drain: 'drain started',
  taint: 'node tainted',
  prefetch: 'agent asked to fetch ahead',
  'check-downloads': 'agent asked whether it can download',
  'end-prefetch': 'agent told to fetch nothing ahead',
  cancel: 'signal cancelled',
};

function actionMessage(assessment: Assessment, nodeAction: NodeAction): string {
  if (nodeAction.kind === 'clean-up')
    return nodeAction.cordon ? 'node uncordoned' : 'taint removed from node';
  if (nodeAction.kind !== 'acknowledge') return MESSAGES[nodeAction.kind];
  const { stage, target } = nodeAction;
  return `${assessment.of(stage, target).reason.message}; its agent may continue`;
}

const none = <P extends string>(phases: readonly P[]) =>
  Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<P, number>;

function measurePlan(
  metrics: Metrics,
  dialect: string,
  { plan, assessment }: Turn,
  waits: readonly Wait[],
): void {
  const { snapshot, now } = assessment;
  const { rollout } = snapshot;
  const targets = none<TargetPhase>([
    ...model.RECORDED_STATES,
    'signalled',
    'working',
    'verifying',
  ]);
  for (const stage of rollout.stages)
    for (const target of stage.targets) targets[phaseOf(assessment, stage, target)]++;
  const held = waits.filter(({ reason }) => !isUnasked(reason));
  const heldBy = held.map(({ gate, reason }) => ({ gate, reason: reason.code }));
  const { phase } = planEndOf(snapshot, now);
  const phases = { ...none(PLAN_PHASES), [phase]: 1 };
  metrics.plan({ dialect, plan: keyOf(plan), phases, targets, waits: heldBy });
}

function measureSteps(
  metrics: Metrics,
  dialect: string,
  snapshot: Snapshot,
  after: model.Rollout,
): void {
  for (const { target } of model.stateChanges(snapshot.rollout, after)) {
    if (target.state !== 'done') continue;
    const { observation } = factsOf(snapshot, target);
    const spent = observation.kind === 'none' ? undefined : observation.report?.spent;
    for (const [step, ms] of Object.entries(spent ?? {}))
      metrics.stepDone(dialect, step, ms / 1000);
  }
}

/** Remembers which targets in progress stall or rest, and since when: each is reported once. */
export function heldMemory() {
  const reported = new Map<string, ReadonlyMap<string, number>>();
  return {
    at(key: string, assessment: Assessment) {
      const before = reported.get(key) ?? new Map<string, number>();
      const held = heldTargets(assessment);
      const since = (event: TargetEvent): number => before.get(wordsOf(event)) ?? assessment.now;
      reported.set(key, new Map(held.map((event) => [wordsOf(event), since(event)])));
      const fresh = held.filter((event) => !before.has(wordsOf(event)));
      const stalling = held.filter(({ reason }) => reason.code !== 'Resting');
      return {
        stalled: fresh.filter(({ reason }) => reason.code === 'Stalled'),
        rests: fresh.filter(({ reason }) => reason.code === 'Resting'),
        /** All that stalls or is refused: since when (ms), by message. */
        stalls: new Map(stalling.map((event) => [event.reason.message, since(event)])),
      };
    },
    forget: (key: string) => reported.delete(key),
  };
}

/** Remembers what contradicts the end of each plan: it is reported once. */
function endMemory() {
  const reported = new Map<string, string>();
  return {
    at(key: string, { snapshot, now }: Assessment): Reason | undefined {
      const { phase, reason } = planEndOf(snapshot, now);
      const isNew = reported.get(key) !== reason?.message;
      // The record of an end without targets has its Event.
      if (phase !== 'edited' && phase !== 'differs') {
        reported.delete(key);
        return undefined;
      }
      if (reason) reported.set(key, reason.message);
      return isNew ? reason : undefined;
    },
    forget: (key: string) => reported.delete(key),
  };
}

/** Without numbers: a scheduler counts other nodes each time. */
function wordsOf({ target, reason }: TargetEvent): string {
  return `${target.key} ${reason.message.replaceAll(/\b\d+\b/g, '')}`;
}

function heldTargets(assessment: Assessment): TargetEvent[] {
  const stage = model.activeStage(assessment.snapshot.rollout);
  if (!stage) return [];
  return model.inState(stage, 'intended').flatMap((target): TargetEvent[] => {
    const { reason, gate } = assessment.of(stage, target);
    // A refused write has its Event already.
    if (reason.code === 'Stalled' || gate === 'write')
      return [{ type: 'Warning', reason, stage, target }];
    return reason.code === 'Resting' ? [{ type: 'Normal', reason, stage, target }] : [];
  });
}
