/** Owns the explanation of a campaign: where each target is, and for what and until when everything else waits. */
import { rfc3339 } from '../util/clock.ts';
import { choose, isStopping } from './advance.ts';
import type { Campaign, Policy, Snapshot, Stage, TargetPhase, Wait } from './model.ts';
import { isFinal } from './model.ts';
import { deadlineOf, factsOf, progressOf } from './progress.ts';
import { because } from './reasons.ts';
import { limitOf } from './schedule/slots.ts';
import { activeStage } from './stages.ts';

export interface Explanation {
  readonly waits: readonly Wait[];
  readonly phases: ReadonlyMap<string, TargetPhase>;
  readonly recheckAfterMs: number | undefined;
}

export function explain(snapshot: Snapshot, policy: Policy, now: number): Explanation {
  const { campaign } = snapshot;
  const phases = new Map<string, TargetPhase>();
  for (const stage of campaign.stages) {
    for (const target of stage.targets) phases.set(target.key, progressOf(snapshot, stage, target, policy, now).phase);
  }
  const stage = activeStage(campaign);
  if (!stage || isFinal(campaign)) return { waits: [], phases, recheckAfterMs: undefined };
  const flying = inFlightWaits(snapshot, stage, policy, now);
  const held = heldWaits(snapshot, stage, policy);
  const rechecks = [...flying, ...held].flatMap(({ recheckMs }) => (recheckMs === undefined ? [] : [recheckMs]));
  const deadlines = flying.flatMap(({ wait: { until } }) =>
    until === undefined ? [] : [Math.max(0, Date.parse(until) - now)],
  );
  const soonest = Math.min(...rechecks, ...deadlines);
  return {
    waits: [...flying, ...held].map(({ wait }) => wait),
    phases,
    recheckAfterMs: Number.isFinite(soonest) ? soonest : undefined,
  };
}

interface Held {
  readonly wait: Wait;
  readonly recheckMs?: number | undefined;
}

function inFlightWaits(snapshot: Snapshot, stage: Stage, policy: Policy, now: number): Held[] {
  return stage.targets
    .filter(({ state }) => state === 'intended')
    .map((target) => {
      const { phase, reason, gate, recheckMs } = progressOf(snapshot, stage, target, policy, now);
      const { observation } = factsOf(snapshot, target);
      // The time of a target runs from its signal: one that holds a slot without any has no deadline.
      const isSignalled = observation.kind !== 'none';
      const since = isSignalled ? observation.since : target.since;
      const deadline = deadlineOf(target, policy);
      const until = isSignalled && Number.isFinite(deadline) ? { until: rfc3339(deadline) } : {};
      return { wait: { target: target.name, gate: gate ?? phase, reason, since, ...until }, recheckMs };
    });
}

/** What keeps the pending targets of the active stage from starting; one wait for all that only lack a slot. */
function heldWaits(snapshot: Snapshot, stage: Stage, policy: Policy): Held[] {
  const { campaign } = snapshot;
  const since = lastProgress(campaign);
  if (isStopping(campaign, policy))
    return [{ wait: { gate: 'failure-budget', reason: stoppingReason(campaign), since } }];
  const { waiting, chosen } = choose(snapshot, stage, policy);
  const held = waiting.map(({ target, gate, reason, recheckMs }) => ({
    wait: { target: target.name, gate, reason, since },
    recheckMs,
  }));
  const pending = stage.targets.filter(({ state }) => state === 'pending').length - waiting.length - chosen.length;
  if (pending <= 0) return held;
  const limit = limitOf(stage);
  const message = `${pending} more ${stage.role}s wait for one of ${limit} ${limit === 1 ? 'slot' : 'slots'}`;
  return [...held, { wait: { gate: 'slots', reason: because('NoFreeSlot', message), since } }];
}

function stoppingReason({ problems, reason }: Campaign): Wait['reason'] {
  const [problem] = problems;
  if (problem) return because('InvalidPlan', `the plan was changed while it ran: ${problem.message}`);
  return because('FinishingInFlight', `nothing new starts: ${reason?.message ?? 'a target failed'}`);
}

/** The moment when anything was last recorded: since then whoever waits has been waiting. */
function lastProgress({ stages }: Campaign): string {
  return (
    stages
      .flatMap(({ targets }) => targets.map(({ since }) => since))
      .toSorted()
      .at(-1) ?? ''
  );
}
