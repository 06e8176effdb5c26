/** Makes the state of the user interface from the plans of `refit status`, which have one reading each, with the texts of `refit why`. */

import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { ReversibleDialect } from '../contract/roll-back.ts';
import { causesOf, historyOf, type PlanHistory } from '../history/history.ts';
import type { ShownPlan, ShownStatus, StageJson, TargetJson } from '../status/json-form.ts';
import { stepsOf } from '../status/picture.ts';
import * as sentences from '../status/sentences.ts';
import * as text from '../status/text.ts';
import { isCause, waitsOf } from '../why/target-waits.ts';
import { chiefLine, nodeSections, notStarted, planSections } from '../why/why-command.ts';
import { createLabelTable, type LabelTable } from './node-labels.ts';
import { offersOf } from './offers.ts';
import type { DashboardState, NodeState, PagePlan, RunState, Said } from './state.ts';

export interface Seen {
  readonly status: ShownStatus;
  readonly rollouts: readonly NodeRollout[];
  readonly missing: readonly string[];
  /** Returns the labels of the Node with this name; undefined if it does not exist. Without it, the state has no labels. */
  readonly labelsOf?: (name: string) => Readonly<Record<string, string>> | undefined;
  /** The dialects, which know how plans go back. Without them, the state offers no roll-back. */
  readonly modules?: readonly Pick<ReversibleDialect, 'name' | 'rollBack'>[];
}

export function stateOf(seen: Seen, now: number): DashboardState {
  const { status, missing, labelsOf } = seen;
  const labels = createLabelTable();
  const plans = status.plans.map((plan) => pagePlan(seen, plan, labels, now));
  return {
    at: rfc3339(now),
    silentSince: status.silentSince,
    notes: notesOf(status),
    missing,
    ...(labelsOf === undefined ? {} : { labels: labels.all }),
    plans,
  };
}

/**
 * Returns the notes with times instead of ages, because a page stays open for hours. Returns no notes if the API server
 * does not answer, because the page itself reports that.
 */
function notesOf(status: ShownStatus): string[] {
  if (status.silentSince !== undefined) return [];
  const isLed = status.leader.state === 'held';
  return text.notesOf(status).map(({ problem, since, effect }) => {
    if (since === undefined) return `${problem}: ${effect}`;
    return isLed
      ? `${problem} since ${since}: ${effect}`
      : `Stale since ${since}. ${problem}: ${effect}`;
  });
}

/** Returns what `refit why NODE` says about a node of the plan with this key; an empty list if the plan does not have the node. */
export function explainNode(status: ShownStatus, key: string, node: string, now: number): Said[] {
  return status.plans
    .filter((plan) => keyOf(plan) === key)
    .flatMap((plan) => nodeSections(status, plan, node, now).flatMap(({ sections }) => sections))
    .flatMap(saidIn);
}

export function keyOf({ dialect, namespace = '', name }: ShownPlan): string {
  return `${dialect}/${namespace}/${name}`;
}

function saidIn({ heading, lines }: text.Section): Said[] {
  return lines.length === 0 ? [] : [{ heading, lines }];
}

function pagePlan(seen: Seen, plan: ShownPlan, labels: LabelTable, now: number): PagePlan {
  const { status, rollouts, modules = [] } = seen;
  const way = modules.find(({ name }) => name === plan.dialect)?.rollBack;
  const rollout = rollouts.find((each) => isRolloutOf(each, plan));
  const { wave, eta } = rollout?.status ?? {};
  const recorded = recordedRun(plan, rollout);
  const expected = expectedEnd(plan, eta, now);
  return {
    key: keyOf(plan),
    title: text.titleOf(plan),
    phase: plan.phase,
    isOpen: isOpenPlan(plan),
    versions: text.broughtVersions(plan),
    ...sentences.progressIn(sentences.targetsOf(plan)),
    percent: sentences.percentOf(plan),
    paused: plan.paused,
    unapproved: plan.waits.find(({ unapproved }) => unapproved !== undefined)?.unapproved,
    failedHooks: plan.retryableHooks,
    ...offersOf(plan, { rollout, way }, now),
    expected,
    progress: progressOf(plan, expected, now),
    started: recorded?.started ?? plan.started ?? plan.created,
    ended: recorded?.ended ?? plan.ended,
    wave: wave === undefined ? undefined : `wave ${wave.current} of ${wave.total}`,
    creator: plan.updateConfig === undefined ? undefined : `UpdateConfig ${plan.updateConfig}`,
    chief: chiefLine(status, plan, now),
    why: planSections(status, plan, now).flatMap(saidIn),
    held: sentences.heldLines(sentences.heldTargets(plan)),
    checks: (plan.checks ?? []).map(({ name, state, message = '' }) => ({ name, state, message })),
    nodes: nodesOf(seen, plan, labels, now),
    history: rollout === undefined ? [] : endedRunsOf(historyOf(rollout)),
    traceId: recorded?.traceId,
  };
}

/** Returns the recorded range of the end; undefined if the end is not foreseeable, or if no leader has renewed a range that is over. */
function expectedEnd(
  plan: ShownPlan,
  eta: text.ExpectedEnd | undefined,
  now: number,
): text.ExpectedEnd | undefined {
  if (eta === undefined || !isOpenPlan(plan) || !sentences.hasForeseeableEnd(plan))
    return undefined;
  const { earliest, latest } = eta;
  return Date.parse(latest) <= now ? undefined : { earliest, latest };
}

function progressOf(
  plan: ShownPlan,
  expected: text.ExpectedEnd | undefined,
  now: number,
): string[] {
  if (!isOpenPlan(plan)) return [];
  return expected === undefined
    ? text.progressOf(plan, now)
    : text.progressWithin(plan, expected, now);
}

/**
 * Returns the record of the current run of the plan, as `refit history` shows it; undefined if the controller has not
 * written a record. The record is needed for the time at which the run started. The status of the plan may lack this
 * time, because the times in the status change with the state of each node.
 */
function recordedRun(
  { id, uid }: ShownPlan,
  rollout: NodeRollout | undefined,
): NodeRolloutRun | undefined {
  if (rollout === undefined) return undefined;
  return historyOf(rollout).runs.find(
    (run) => run.id === id && (run.planUid === undefined || run.planUid === uid),
  );
}

/** Returns true if the NodeRollout is about the plan. */
export function isRolloutOf({ spec }: NodeRollout, { uid, name, namespace }: ShownPlan): boolean {
  const { plan } = spec;
  if (plan.uid !== undefined) return plan.uid === uid;
  return plan.name === name && plan.namespace === namespace;
}

/** Returns the runs that have ended. The run in progress is left out, because the plan itself shows it. */
function endedRunsOf(history: PlanHistory): RunState[] {
  return runsOf(history).filter(({ ended }) => ended !== undefined);
}

export function runsOf({ runs }: PlanHistory): RunState[] {
  return runs.map((run) => {
    const { id, started, ended, version = '', phase, counts, traceId } = run;
    return {
      id,
      started,
      ended,
      version,
      phase,
      done: counts.done,
      total: counts.total,
      ...(traceId === undefined ? {} : { traceId }),
      causes: causesOf(run, runs),
    };
  });
}

function nodesOf(
  { labelsOf }: Seen,
  plan: ShownPlan,
  labels: LabelTable,
  now: number,
): NodeState[] {
  const waits = sentences.waitsByTarget(plan);
  return plan.stages.flatMap((stage) => {
    const { role, active, targets } = stage;
    return targets.map((target): NodeState => {
      const wait = active ? waits.get(target.name) : undefined;
      const { phase } = target;
      const failed = phase === 'failed';
      const [hold] = target.held
        ? sentences.heldLines([{ name: target.name, ...target.held }])
        : [];
      const row = failed
        ? sentences.failedRow(plan, target, now)
        : sentences.rowOf(plan, target, wait, now);
      const version = sentences.wantedVersion(plan, stage, target);
      const own = labels.add(labelsOf?.(target.name));
      return {
        name: target.name,
        role,
        version,
        phase: phaseOf(target),
        state: row.state,
        message: phase === 'pending' ? notStarted(plan, stage, target) : row.message,
        since: target.since,
        // A product may spell the version of a Plan in another way than the version that its kubelets report.
        from: target.hadVersion === true ? version : (target.from ?? target.installed),
        wave: target.wave,
        zone: target.zone,
        ...(hold === undefined ? {} : { hold }),
        ...(target.drain === undefined ? {} : { drain: target.drain }),
        ...delayOf(plan, stage, target, now),
        ...(own === undefined ? {} : { labels: own }),
        steps: stepsOf(target, plan, now).map(({ word, from, to }) => ({ word, from, to })),
      };
    });
  });
}

/** Milliseconds after which a node in progress that waits is stuck. A node waits for seconds in every upgrade. */
const STUCK_MS = 60_000;

/** Says whether the target waits for something other than its turn, and for how long. A hold is not such a wait. */
function delayOf(
  plan: ShownPlan,
  stage: StageJson,
  target: TargetJson,
  now: number,
): Pick<NodeState, 'waits' | 'stuck' | 'unanswered'> {
  const { phase, stalled } = target;
  const isMoving = sentences.isMoving(target);
  if (!isMoving && (phase !== 'pending' || !isOpenPlan(plan))) return {};
  const wait = waitsOf(plan, stage, target).find(
    (each) => isCause(each) && each.reason.code !== 'Held',
  );
  if (!isMoving) return wait === undefined ? {} : { waits: true };
  const unanswered = phase === 'signalled';
  const since = unanswered || stalled !== undefined ? target.since : wait?.since;
  if (since === undefined) return {};
  return {
    waits: true,
    ...(now - Date.parse(since) > STUCK_MS ? { stuck: true } : {}),
    ...(unanswered ? { unanswered: true } : {}),
  };
}

function phaseOf(target: TargetJson): NodeState['phase'] {
  if (sentences.isMoving(target)) return 'moving';
  const { phase } = target;
  return phase === 'done' || phase === 'failed' || phase === 'skipped' ? phase : 'pending';
}
