/** Reports what the engine does: in the log, as Events, metrics and conditions, in the same words. */
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Logger } from '../../util/log.ts';
import { uncheckedReason } from '../assess/advance.ts';
import type { Assessment } from '../assess/assess.ts';
import { planEndOf } from '../assess/ended.ts';
import { settle } from '../assess/settle.ts';
import type { Effects, Sent } from '../execute/writes.ts';
import { explain } from '../explain/explain.ts';
import type { NodeAction } from '../model/decision.ts';
import type { Reason, ReportedEvent } from '../model/reasons.ts';
import * as model from '../model/rollout.ts';
import { actionMessage } from './action-message.ts';
import { type AnnouncerParts, createAnnouncer } from './announcer.ts';
import { writeConditions, writeStalls } from './conditions.ts';
import { endMemory } from './contradicted-ends.ts';
import {
  cleanUpEvents,
  nodeActionEvents,
  planEvents,
  restartEvent,
  signalEvents,
  targetEvents,
} from './events.ts';
import { heldMemory } from './held-targets.ts';
import { measurePlan, measureSteps } from './measures.ts';
import type { Turn } from './turn.ts';

export type Reporter = ReturnType<typeof createReporter>;

export interface ReporterParts extends AnnouncerParts, Pick<Effects, 'client' | 'ownWrites'> {
  readonly metrics: Metrics;
}

export function createReporter(parts: ReporterParts) {
  const { dialect, metrics } = parts;
  const { onPlan, onTargets, onNodes } = createAnnouncer(parts);
  const held = heldMemory();
  const ends = endMemory();
  const writtenAt = new Map<string, number>();
  return {
    recorded({ plan, assessment }: Turn, after: model.Rollout): void {
      const { snapshot, now } = assessment;
      const { waits } = explain(settle(assessment));
      const ours = planEvents(snapshot.rollout, after, waits);
      const known = dialect.reporting?.planEvents?.(
        plan,
        dialect.project(after, plan, now),
        after,
        ours,
      );
      for (const event of known ?? ours) onPlan(plan, event);
      const reason = uncheckedStart(assessment, after);
      if (reason) onPlan(plan, { type: 'Warning', reason });
      if (!known) onTargets(keyOf(plan), targetEvents(assessment, after));
      measureSteps(metrics, dialect.name, snapshot, after);
      if (model.isFinal(after) && !model.isFinal(snapshot.rollout)) logEnd(parts.log, plan, after);
    },
    restarted({ plan, assessment }: Turn): void {
      const { edit } = planEndOf(assessment.snapshot, assessment.now);
      if (edit !== undefined) onPlan(plan, restartEvent(edit));
    },
    sent({ plan, assessment }: Turn, sent: readonly Sent[]): void {
      const written = sent
        .filter(({ result }) => result === 'written')
        .map(({ signalling }) => signalling);
      if (!dialect.reporting?.planEvents)
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
      for (const event of dialect.reporting?.planEvents?.(plan, plan, snapshot.rollout, rests) ??
        [])
        onPlan(plan, event);
      const end = ends.at(keyOf(plan), assessment);
      if (end) onPlan(plan, { type: 'Warning', reason: end });
      const stalledMs = await writeStalls(parts, plan, stalls, now);
      measurePlan(metrics, dialect.name, turn, waits);
      if (dialect.statusRecord?.hasConditions !== false) return stalledMs;
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
      onNodes(cleanUpEvents(rollout, nodeAction));
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

/** Why a rollout that begins now starts unchecked. */
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
