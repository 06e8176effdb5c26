/** Owns telling people and machines what the engine does: in the log, by events, by metrics and by conditions, in the same words. */
import { nodes } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Logger } from '../../util/log.ts';
import type { Effects } from '../act/effects.ts';
import type { Sent } from '../act/signal.ts';
import type { Dialect, World } from '../dialect.ts';
import { uncheckedReason } from '../gates/version-verdict.ts';
import type { Decision, NodeAction, Wait } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import type { Reason } from '../model/reasons.ts';
import type { Rollout } from '../model/recorded.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { tellConditions } from './conditions.ts';
import { measurePlan, measureSteps } from './metrics.ts';
import { type Announcement, planEvents } from './plan-events.ts';
import {
  cleanUpEvents,
  nodeActionEvents,
  signalEvents,
  type TargetAnnouncement,
  targetEvents,
} from './target-events.ts';

/** All that one decision is taken on. */
export interface Turn<P extends KubeObject> {
  readonly world: World;
  readonly plan: P;
  readonly policy: RolloutPolicy;
  readonly snapshot: Snapshot;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

export interface Reporter<P extends KubeObject> {
  recorded(turn: Turn<P>, after: Rollout, waits: readonly Wait[]): void;
  sent(turn: Turn<P>, sent: readonly Sent[]): void;
  ran(turn: Turn<P>, nodeAction: NodeAction): void;
  /** Nothing is left to do now; resolves with the milliseconds after which there may be more to tell. */
  decided(turn: Turn<P>, decision: Decision): Promise<number | undefined>;
  /** What plans left on nodes was ended or taken away. */
  cleared(world: World, rollout: Rollout, nodeAction: NodeAction): void;
  failed(plan: P, reason: Reason): void;
  /** There is no such plan any more. */
  gone(key: string): void;
}

export interface ReporterParts<P extends KubeObject> extends Pick<Effects<P>, 'client' | 'ownWrites'> {
  readonly dialect: Dialect<P>;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** `object` is the plan, or what stands for a target. */
  announce(object: KubeObject, announcement: Announcement): void;
}

export function createReporter<P extends KubeObject>(parts: ReporterParts<P>): Reporter<P> {
  const { dialect, log, metrics } = parts;
  const onPlan = (plan: P, announcement: Announcement): void => {
    log.info(announcement.reason.message, { plan: nameOf(plan), reason: announcement.reason.code });
    parts.announce(plan, announcement);
  };
  const onTargets = ({ plan, world }: Turn<P>, announcements: readonly TargetAnnouncement[]): void => {
    for (const { stage, target, type, reason } of announcements) {
      const object = dialect.objectOf(stage, target, world);
      if (object) parts.announce(object, { type, reason });
      log.info(reason.message, { plan: nameOf(plan), node: target.name, reason: reason.code });
    }
  };
  return {
    recorded(turn, after, waits) {
      const { snapshot, plan, policy, now } = turn;
      for (const announcement of planEvents(snapshot.rollout, after, waits)) onPlan(plan, announcement);
      const begins = snapshot.rollout.phase === 'new' && after.phase === 'running';
      const reason = begins ? uncheckedReason(snapshot, policy) : undefined;
      if (reason) onPlan(plan, { type: 'Warning', reason });
      onTargets(turn, targetEvents(snapshot, after, policy, now));
      measureSteps(metrics, dialect.name, snapshot, after);
    },
    sent(turn, sent) {
      const written = sent.filter(({ result }) => result === 'written').map(({ signalling }) => signalling);
      onTargets(turn, signalEvents(turn.snapshot.rollout, written));
    },
    ran(turn, nodeAction) {
      log.info('node action', { step: nodeAction.kind, node: nodeAction.target.name, plan: nameOf(turn.plan) });
      onTargets(turn, nodeActionEvents(turn.snapshot.rollout, nodeAction));
    },
    async decided(turn, decision) {
      const { plan, snapshot, now } = turn;
      measurePlan(metrics, dialect.name, nameOf(plan), snapshot, decision);
      if (dialect.statusRecord?.conditionsInAnnotation !== true || snapshot.rollout.phase === 'new') return undefined;
      const writing = { ...parts, plans: dialect.plans, tell: (news: Announcement) => onPlan(plan, news) };
      return await tellConditions(writing, plan, snapshot.rollout, decision.waits, now);
    },
    cleared(world, rollout, nodeAction) {
      for (const { node, type, reason } of cleanUpEvents(rollout, nodeAction)) {
        const object = world.get(nodes, node);
        if (object) parts.announce(object, { type, reason });
        log.info(reason.message, { node, reason: reason.code });
      }
    },
    failed: (plan, reason) => onPlan(plan, { type: 'Warning', reason }),
    gone: (key) => metrics.forgetPlan(dialect.name, key),
  };
}

function nameOf({ metadata: { name, namespace } }: KubeObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
