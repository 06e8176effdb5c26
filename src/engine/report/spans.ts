/**
 * Creates the spans of a rollout from its record and from the reports of its nodes. The spans never depend on the time
 * at which a leader observed something, and their ids come from the names of the run, the node, the attempt and the
 * step. Therefore every leader creates the same spans, and a run has a single trace.
 */
import { hash } from 'node:crypto';
import type { SpanReference } from '../../runtime/metrics.ts';
import type { Attributes, Span, SpanEvent } from '../../traces/otlp.ts';
import { printable } from '../../util/printable.ts';
import type { Assessment } from '../assess/assess.ts';
import { countsOf } from '../explain/progress.ts';
import { workOn } from '../explain/work-on.ts';
import { factsOf, nodeNameOf, versionAsked } from '../gates/types.ts';
import type { Wait } from '../model/decision.ts';
import { runOf } from '../model/decisions-of-people.ts';
import type { Observation } from '../model/facts.ts';
import {
  isFinal,
  type Rollout,
  type Stage,
  shownRole,
  type Target,
  withStages,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';

/** A wait, and the last time at which a leader observed this wait, in milliseconds since the Unix epoch. */
export interface SeenWait {
  readonly wait: Wait;
  readonly until: number;
}

type Attempted = Exclude<Observation, { readonly kind: 'none' }>;

/** A target on which work began and has ended. */
export interface EndedTarget {
  readonly stage: Stage;
  readonly target: Target;
  readonly observation: Attempted;
  /** A text that identifies the attempt among all attempts of the run. */
  readonly mark: string;
}

/** The most steps of one node that become spans. The number is limited because nodes report their steps themselves. */
const MOST_STEPS = 20;
const LONGEST_STEP_MS = 30 * 86_400_000;
const LONGEST_NAME = 64;
const LONGEST_TEXT = 512;

/** Returns the id of the trace of the rollout; undefined before the rollout is recorded. */
export function traceIdOf(rollout: Pick<Rollout, 'source' | 'id' | 'run' | 'phase'>) {
  return rollout.phase === 'new' ? undefined : digest('trace', runOf(rollout)).slice(0, 32);
}

function spanIdOf(rollout: Rollout, ...names: readonly string[]): string {
  return digest('span', runOf(rollout), ...names).slice(0, 16);
}

function stepIdOf(
  rollout: Rollout,
  target: Target,
  { attempt }: Attempted,
  index: number,
  name: string,
): string {
  return spanIdOf(rollout, target.key, attempt, String(index), name);
}

/**
 * Returns the reference to the span that `nodeSpans` creates for this step, for the exemplar of a metric; undefined if
 * `nodeSpans` creates no span for the step.
 */
export function stepReference(
  rollout: Rollout,
  target: Target,
  observation: Attempted,
  index: number,
  name: string,
): SpanReference | undefined {
  const traceId = traceIdOf(rollout);
  if (traceId === undefined || index >= MOST_STEPS || !hasTime(observation)) return undefined;
  return { traceId, spanId: stepIdOf(rollout, target, observation, index, stepNameOf(name)) };
}

function digest(...names: readonly string[]): string {
  return hash('sha256', names.join('\0'));
}

/**
 * Returns the targets on which work began and has ended. A target whose work never began has no attempt, and therefore
 * no span.
 */
export function endedTargets(snapshot: Snapshot, rollout: Rollout): EndedTarget[] {
  return withStages(rollout).flatMap(({ stage, target }) => {
    if (target.state !== 'done' && target.state !== 'failed') return [];
    const { observation } = factsOf(snapshot, target);
    if (observation.kind === 'none' || !hasTime(observation)) return [];
    return [{ stage, target, observation, mark: `${target.key}\0${observation.attempt}` }];
  });
}

/** Returns true if the name of the attempt is the time of its start. Any other attempt gets no span. */
function hasTime({ attempt }: Attempted): boolean {
  return !Number.isNaN(Date.parse(attempt));
}

const NODE_SPANS = { upgrade: 'upgrade node', 'roll-back': 'roll back node' } as const;

/** Returns the span of the node and the spans of its steps. */
export function nodeSpans(
  { snapshot }: Pick<Assessment, 'snapshot'>,
  rollout: Rollout,
  ended: EndedTarget,
  waits: readonly SeenWait[],
): Span[] {
  const { stage, target, observation } = ended;
  const { attempt, report } = observation;
  const traceId = traceIdOf(rollout) ?? '';
  const spanId = spanIdOf(rollout, target.key, attempt);
  const from = Date.parse(attempt);
  const steps = stepsOf(report?.spent, from);
  const hasSaid = observation.kind === 'succeeded' || observation.kind === 'failed';
  // If the node has reported the end of the attempt, the time in that report is used, because it is the same for every
  // leader. Otherwise a leader has ended the attempt, and the time that this leader has recorded is used.
  const said = timeOf(hasSaid ? observation.since : target.since);
  const to = Math.max(steps.at(-1)?.to ?? from, said);
  const isGood = target.state === 'done';
  const message = observation.kind === 'failed' ? clipped(observation.message) : undefined;
  const node: Span = {
    traceId,
    spanId,
    parentSpanId: spanIdOf(rollout),
    name:
      stage.keepsVersion === true ? 'prepare node' : NODE_SPANS[workOn(snapshot, stage, target)],
    from,
    to,
    attributes: {
      'k8s.node.name': clipped(nodeNameOf(target, factsOf(snapshot, target))),
      'refit.target': clipped(target.name),
      'refit.role': shownRole(stage),
      'refit.version': clipped(versionAsked(factsOf(snapshot, target), stage)),
      'refit.version.before': report?.from && clipped(report.from),
      'refit.state': target.state,
      'refit.rolled_back': report?.rolledBack,
    },
    events: eventsOf(waits),
    status: { isGood, message },
  };
  const ofNode = { 'k8s.node.name': node.attributes['k8s.node.name'] };
  return [
    node,
    ...steps.map((step, index) => ({
      traceId,
      spanId: stepIdOf(rollout, target, observation, index, step.name),
      parentSpanId: spanId,
      ...step,
      attributes: ofNode,
    })),
  ];
}

/**
 * Returns the steps that have ended. The first step starts at the start of the attempt, and each later step starts at
 * the end of the step before it.
 */
function stepsOf(spent: Readonly<Record<string, number>> | undefined, began: number) {
  let at = began;
  return Object.entries(spent ?? {})
    .slice(0, MOST_STEPS)
    .map(([name, ms]) => {
      const from = at;
      at += Number.isFinite(ms) ? Math.min(Math.max(0, ms), LONGEST_STEP_MS) : 0;
      return { name: stepNameOf(name), from, to: at };
    });
}

function stepNameOf(name: string): string {
  return clipped(name, LONGEST_NAME) || 'step';
}

/** Returns the span of the whole rollout, which must be over. */
export function rolloutSpan(
  { snapshot, now }: Pick<Assessment, 'snapshot' | 'now'>,
  rollout: Rollout,
  plan: { readonly title: string; readonly dialect: string },
  waits: readonly SeenWait[],
): Span {
  const { from, to } = spanOf(snapshot, rollout, now);
  const { total, done, failed } = countsOf(rollout);
  const versions = new Set(
    withStages(rollout)
      .map(({ stage, target }) => versionAsked(factsOf(snapshot, target), stage))
      .filter(Boolean),
  );
  return {
    traceId: traceIdOf(rollout) ?? '',
    spanId: spanIdOf(rollout),
    name: 'rollout',
    from,
    to,
    attributes: {
      'refit.plan': plan.title,
      'refit.dialect': plan.dialect,
      'refit.run': runOf(rollout),
      'refit.version': clipped([...versions].join(', ')),
      'refit.phase': rollout.phase,
      'refit.targets': total,
      'refit.targets.done': done,
      'refit.targets.failed': failed,
    },
    events: eventsOf(waits),
    status: {
      isGood: rollout.phase === 'done',
      message: rollout.reason && clipped(rollout.reason.message),
    },
  };
}

/**
 * Returns the period from the first attempt to the last end, according to the record and the reports of the nodes. If
 * they contain no times, both ends of the period are `now`.
 */
export function spanOf(snapshot: Snapshot, rollout: Rollout, now: number) {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const { target } of withStages(rollout)) {
    const since = timeOf(target.since, now);
    const { observation } = factsOf(snapshot, target);
    const began = observation.kind === 'none' ? since : timeOf(observation.attempt, since);
    const ended = observation.kind === 'none' ? since : timeOf(observation.since, since);
    from = Math.min(from, since, began);
    to = Math.max(to, since, ended);
  }
  return Number.isFinite(from) ? { from, to: Math.max(from, to) } : { from: now, to: now };
}

/** Returns an event for each wait, with the seconds for which leaders observed the wait. */
function eventsOf(waits: readonly SeenWait[]): SpanEvent[] {
  return waits.map(({ wait: { reason, ends, target, since }, until }) => ({
    name: 'wait',
    at: timeOf(since, until),
    attributes: {
      'refit.reason': reason.code,
      'refit.message': clipped(reason.message),
      'refit.until': ends && clipped(ends),
      'refit.target': target && clipped(target),
      'refit.seconds': Math.max(0, Math.round((until - timeOf(since, until)) / 1000)),
    } satisfies Attributes,
  }));
}

/** Returns true if the run ended so long ago that an earlier leader has sent its trace. */
export function hasEndedBefore(
  { snapshot, now }: Pick<Assessment, 'snapshot' | 'now'>,
  rollout: Rollout,
  ms: number,
): boolean {
  return isFinal(rollout) && now - spanOf(snapshot, rollout, now).to > ms;
}

function timeOf(text: string, otherwise = Number.NEGATIVE_INFINITY): number {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? otherwise : ms;
}

function clipped(text: string, most = LONGEST_TEXT): string {
  const shown = printable(text);
  return shown.length <= most ? shown : `${shown.slice(0, most - 1)}…`;
}
