/** Owns telling people and machines what the engine does: in the log, by events, by metrics and by conditions, in the same words. */
import { nodes } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Logger } from '../util/log.ts';
import type { Dialect, World } from './dialect.ts';
import type { Effects, Sent } from './execute.ts';
import { measurePlan, measureSteps } from './measure.ts';
import type { Campaign, Decision, Errand, Snapshot, Wait } from './model.ts';
import { type Announcement, narrate } from './narrate.ts';
import {
  narrateClearing,
  narrateErrand,
  narrateSignals,
  narrateTargets,
  type TargetAnnouncement,
} from './narrate-targets.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import type { Reason } from './reasons.ts';
import { tellConditions } from './tell-conditions.ts';
import { unjudgedReason } from './version-verdict.ts';

/** All that one decision is taken on. */
export interface Turn<P extends KubeObject> {
  readonly world: World;
  readonly plan: P;
  readonly policy: CampaignPolicy;
  readonly snapshot: Snapshot;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

export interface Teller<P extends KubeObject> {
  recorded(turn: Turn<P>, after: Campaign, waits: readonly Wait[]): void;
  sent(turn: Turn<P>, sent: readonly Sent[]): void;
  ran(turn: Turn<P>, errand: Errand): void;
  /** Nothing is left to do now; resolves with the milliseconds after which there may be more to tell. */
  decided(turn: Turn<P>, decision: Decision): Promise<number | undefined>;
  /** What plans left on nodes was ended or taken away. */
  cleared(world: World, campaign: Campaign, errand: Errand): void;
  failed(plan: P, reason: Reason): void;
  /** There is no such plan any more. */
  gone(key: string): void;
}

export interface TellerParts<P extends KubeObject> extends Pick<Effects<P>, 'client' | 'ownWrites'> {
  readonly dialect: Dialect<P>;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** `object` is the plan, or what stands for a target. */
  announce(object: KubeObject, announcement: Announcement): void;
}

export function createTeller<P extends KubeObject>(parts: TellerParts<P>): Teller<P> {
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
      for (const announcement of narrate(snapshot.campaign, after, waits)) onPlan(plan, announcement);
      const begins = snapshot.campaign.phase === 'new' && after.phase === 'running';
      const reason = begins ? unjudgedReason(snapshot, policy) : undefined;
      if (reason) onPlan(plan, { type: 'Warning', reason });
      onTargets(turn, narrateTargets(snapshot, after, policy, now));
      measureSteps(metrics, dialect.name, snapshot, after);
    },
    sent(turn, sent) {
      const written = sent.filter(({ result }) => result === 'written').map(({ signalling }) => signalling);
      onTargets(turn, narrateSignals(turn.snapshot.campaign, written));
    },
    ran(turn, errand) {
      log.info('errand', { step: errand.kind, node: errand.target.name, plan: nameOf(turn.plan) });
      onTargets(turn, narrateErrand(turn.snapshot.campaign, errand));
    },
    async decided(turn, decision) {
      const { plan, snapshot, now } = turn;
      measurePlan(metrics, dialect.name, nameOf(plan), snapshot, decision);
      if (dialect.conditionsInAnnotation !== true || snapshot.campaign.phase === 'new') return undefined;
      const writing = { ...parts, plans: dialect.plans, tell: (news: Announcement) => onPlan(plan, news) };
      return await tellConditions(writing, plan, snapshot.campaign, decision.waits, now);
    },
    cleared(world, campaign, errand) {
      for (const { node, type, reason } of narrateClearing(campaign, errand)) {
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
