/** Owns the explanation of a rollout: where each target is, and for what and until when everything else waits. */
import { rfc3339 } from '../../util/clock.ts';
import { type DecisionContext, factsOf } from '../gates/context.ts';
import { abortReason } from '../model/controls.ts';
import type { Probe, TargetPhase, Wait } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import { because } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import { isUnanswered, untilAsked } from '../observe/probe-backoff.ts';
import type { Refused } from '../schedule/candidates.ts';
import { type FailedInFlight, failedInFlightIn } from '../schedule/failed-in-flight.ts';
import { limitOf } from '../schedule/slots.ts';
import { choose, isStopping } from './advance.ts';
import { timeLeft } from './deadlines.ts';
import type { Evaluations } from './evaluate-target.ts';

export interface Explanation {
  readonly waits: readonly Wait[];
  readonly phases: ReadonlyMap<string, TargetPhase>;
  readonly recheckAfterMs: number | undefined;
  readonly probes: readonly Probe[];
}

export function explain(evaluations: Evaluations): Explanation {
  const { snapshot, now } = evaluations;
  const { rollout } = snapshot;
  const phases = new Map<string, TargetPhase>();
  for (const stage of rollout.stages) {
    for (const target of stage.targets) phases.set(target.key, evaluations.of(stage, target).phase);
  }
  if (isFinal(rollout)) return { waits: [], phases, recheckAfterMs: undefined, probes: [] };
  const stage = activeStage(rollout);
  const first = preconditionsWait(snapshot);
  const inFlight = stage && !first ? inFlightWaits(evaluations, stage) : [];
  const all = first ? [first] : [...inFlight, ...heldWaits(evaluations, stage)];
  const rechecks = all.flatMap(({ recheckMs }) => recheckMs ?? []);
  // Expired deadlines with no effect need no recheck.
  const deadlines = all.flatMap(({ deadline = now }) => (deadline > now ? [deadline - now] : []));
  const soonest = Math.min(...rechecks, ...deadlines);
  return {
    waits: all.map(({ wait }) => wait),
    phases,
    recheckAfterMs: Number.isFinite(soonest) ? soonest : undefined,
    probes: all.flatMap(({ probe }) => probe ?? []),
  };
}

function preconditionsWait({ rollout, preconditions }: Snapshot): ExplainedWait | undefined {
  if (rollout.phase !== 'new' || !(preconditions === 'unasked' || isUnanswered(preconditions))) return undefined;
  const checking = because('PreconditionsUnknown', 'checking the preconditions of the plan');
  const { reason, ...next } =
    preconditions === 'unasked'
      ? { reason: checking, probe: { kind: 'preconditions' } as const }
      : untilAsked(preconditions);
  return { wait: { gate: 'preconditions', reason, since: rollout.source.created, ofStage: true }, ...next };
}

export interface ExplainedWait {
  readonly wait: Wait;
  readonly recheckMs?: number | undefined;
  /** Milliseconds since the epoch: when it is judged late. */
  readonly deadline?: number | undefined;
  readonly probe?: Probe | undefined;
}

function inFlightWaits(evaluations: Evaluations, stage: Stage): ExplainedWait[] {
  const { snapshot, policy, now } = evaluations;
  return stage.targets
    .filter(({ state }) => state === 'intended')
    .map((target) => {
      const { phase, reason, gate, recheckMs, until: known, probe } = evaluations.of(stage, target);
      const facts = factsOf(snapshot, target);
      const { observation } = facts;
      // The time of a target runs from its signal: one that holds a slot without any has no deadline.
      const isSignalled = observation.kind !== 'none';
      const since = isSignalled ? observation.since : target.since;
      const deadline = now + timeLeft(target, facts, policy, now);
      const ends = isSignalled && Number.isFinite(deadline);
      const until = ends || known !== undefined ? { until: known ?? rfc3339(deadline) } : {};
      const wait = { target: target.name, gate: gate ?? phase, reason, since, ...until };
      return { wait, recheckMs, probe, ...(ends ? { deadline } : {}) };
    });
}

/** What keeps the pending targets from starting; one wait for all that wait for the same. */
function heldWaits(context: DecisionContext, stage: Stage | undefined): ExplainedWait[] {
  const { snapshot, policy, now } = context;
  const { rollout } = snapshot;
  const since = lastProgress(rollout);
  if (rollout.unread) return [{ wait: { gate: 'record', reason: rollout.unread, since, ofStage: true } }];
  if (isStopping(snapshot, policy)) return [{ wait: { ...stopOf(snapshot), since, ofStage: true } }];
  if (!stage) return [];
  const { waiting, chosen } = choose(context, stage);
  const gated = heldBy(
    stage,
    waiting.map((refused) => ({ ...refused, since: refused.since ?? since })),
  );
  const isHeldAsOne = waiting.some(({ ofRollout }) => ofRollout === true);
  const unslotted = isHeldAsOne ? 0 : pendingIn(stage).length - waiting.length - chosen.length;
  return [
    ...gated,
    ...slotWait(stage, unslotted, since, failedInFlightIn(snapshot, now)),
    ...laterWaits(rollout, stage),
  ];
}

function stopOf({ rollout, controls }: Snapshot): Pick<Wait, 'gate' | 'reason'> {
  const { problems, reason } = rollout;
  if (controls.abort !== undefined) {
    const { code, message } = abortReason(controls.abort);
    const reason = because(code, `${message}; nothing new starts, and what cannot be taken back finishes`);
    return { gate: 'not-aborted', reason };
  }
  const [problem] = problems;
  if (problem) {
    const message = `the plan was changed while it ran: ${problem.message}`;
    return { gate: 'plan-valid', reason: because('InvalidPlan', message) };
  }
  const message = `nothing new starts: ${reason?.message ?? 'a target failed'}`;
  return { gate: 'failure-budget', reason: because('FinishingInFlight', message) };
}

function slotWait(
  stage: Stage,
  count: number,
  since: string,
  failedInFlight: readonly FailedInFlight[],
): ExplainedWait[] {
  if (count <= 0) return [];
  const limit = limitOf(stage);
  const who = count === 1 ? `1 more ${stage.role} waits` : `${count} more ${stage.role}s wait`;
  const names = failedInFlight.map(({ target }) => target.name).join(', ');
  const kept = names === '' ? '' : `; given up, and still at work: ${names}`;
  const message = `${who} for ${limit === 1 ? 'the only slot' : `one of ${limit} slots`}${kept}`;
  const recheckMs = Math.min(...failedInFlight.map(({ leftMs }) => leftMs).filter(Number.isFinite));
  const wait = { gate: 'slots', reason: because('NoFreeSlot', message), since, ofStage: true } as const;
  return [{ wait, ...(Number.isFinite(recheckMs) ? { recheckMs } : {}) }];
}

function laterWaits({ stages }: Rollout, active: Stage): ExplainedWait[] {
  const several = new Set(stages.map(({ command }) => command)).size > 1;
  const titleOf = ({ role, command }: Stage, plural: boolean): string =>
    `${role}${plural ? 's' : ''}${several ? ` of command ${command}` : ''}`;
  return stages.slice(stages.indexOf(active) + 1).flatMap((stage) => {
    const { length } = pendingIn(stage);
    const [first] = pendingIn(stage);
    if (!first) return [];
    const who = `${length} ${titleOf(stage, length > 1)} ${length > 1 ? 'wait' : 'waits'}`;
    const message = `${who} until the ${titleOf(active, true)} are done`;
    return [{ wait: { gate: 'stages', reason: because('EarlierStage', message), since: first.since } }];
  });
}

/** What holds several of them back in the same words is said once, of the first. */
export function heldBy(stage: Stage, waiting: readonly (Refused & { readonly since: string })[]): ExplainedWait[] {
  const alike = Map.groupBy(waiting, ({ gate, reason }) => `${gate} ${reason.message}`);
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const { target, gate, reason, since, until, recheckMs, probe } = first;
    // Behind a controller that waits nobody starts.
    const isOfAll = first.ofRollout === true || others.length > 0 || stage.role === 'controller';
    const ends = until === undefined ? {} : { until };
    return {
      wait: { target: target.name, gate, reason, since, ...ends, ...(isOfAll ? { ofStage: true } : {}) },
      recheckMs,
      probe,
    };
  });
}

function pendingIn({ targets }: Stage): Target[] {
  return targets.filter(({ state }) => state === 'pending');
}

/** The moment when anything was last recorded: whoever waits may have been waiting since then. */
function lastProgress({ stages, source }: Rollout): string {
  return (
    stages
      .flatMap(({ targets }) => targets.map(({ since }) => since))
      .toSorted((a, b) => Date.parse(a) - Date.parse(b))
      .at(-1) ?? source.created
  );
}
