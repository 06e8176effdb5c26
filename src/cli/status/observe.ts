/** Inspects all plans for the same point in time, with the same decision function that the controller uses. */

import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { World } from '../../engine/contract/world.ts';
import { withRunBegun } from '../../engine/execute/restart.ts';
import {
  hasUnknownFailure,
  needsPodCount,
  openQuestions,
  readForPeople,
  warningsOf,
} from '../../engine/explain/inspect.ts';
import { runNameOf } from '../../engine/model/failures.ts';
import {
  isFinal,
  type Source,
  sourceOf,
  withStages,
  withTargets,
} from '../../engine/model/rollout.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import { policyOfPlan } from '../../engine/policy/choose-policy.ts';
import { unresolvedIn } from '../../engine/policy/references.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { blockedBy } from '../../engine/report/conditions.ts';
import type { ShownSilencing } from '../../engine/report/shown-silencing.ts';
import { gather } from '../../engine/snapshot/gather.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { ifPossible, messageOf, RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { PlanTexts } from '../contract/session-dialect.ts';
import { type JobPlaceFindings, lookAtJobPlaces } from '../job-places.ts';
import { unlistedJobs } from '../unlisted-jobs.ts';
import { type InspectionAnswers, inspectionAnswers, type Question } from './answers.ts';
import { harmless } from './harmless.ts';
import type { Sources } from './inspection-sources.ts';
import { planJson, type ShownPlan } from './json-form.ts';
import type { Loaded, Policies } from './load.ts';
import { isKept, type PlanFilter, refOf } from './plan-names.ts';
import type { TextsOf } from './texts-of.ts';

export interface ViewParts {
  readonly sources: Sources;
  readonly policies: Policies;
  readonly textsOf: TextsOf;
  /** Plans from files. Warnings treat them as if they were in the cluster. */
  readonly fromFiles?: readonly KubeObject[];
  /** Selects the plans to inspect. If it is absent, all plans are inspected. */
  readonly filter?: PlanFilter;
  /**
   * If true, the inspection counts the pods that PodDisruptionBudgets cover, if the order of the nodes depends on that
   * count. The count lists every pod of the cluster.
   */
  readonly countsPods?: boolean;
}

/** A plan with all the data for its view, its preview and its explanation. */
export interface Inspection {
  readonly dialect: Dialect;
  readonly texts: PlanTexts;
  readonly plan: KubeObject;
  readonly world: World;
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /**
   * The state of the silences for alerts about the nodes in progress; undefined if the policy has no silences, or if
   * the state is not known.
   */
  readonly silencing?: ShownSilencing | undefined;
  /** The recorded runs of the plan, the newest first; undefined if they are not known. */
  readonly runs?: readonly NodeRolloutRun[] | undefined;
  /** Problems that do not stop the plan, one sentence each. */
  readonly warnings: readonly string[];
  /** Checks that could not run, one sentence each. */
  readonly unseen: readonly string[];
}

/** The error for a plan that Refit cannot read because of a bug in Refit. The other plans are shown nevertheless. */
export class UnreadablePlan extends RefitError {
  readonly dialect: Dialect;
  readonly plan: KubeObject;

  constructor(dialect: Dialect, plan: KubeObject, cause: unknown) {
    const name = refOf({ dialect, plan });
    super('REFIT_INTERNAL', `Refit cannot read the plan ${name}: ${messageOf(cause)}`);
    this.dialect = dialect;
    this.plan = plan;
  }
}

export async function observe(loaded: Loaded, parts: ViewParts, now: number): Promise<ShownPlan[]> {
  const { inspections, unreadable } = await inspectAll([loaded], parts, now);
  const views = [
    ...inspections.map((each) => shownAt(each, now)),
    ...unreadable.map((fault) => shownFault(fault, parts.textsOf)),
  ];
  return views.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
}

/** Returns the view of an unreadable plan. It has the error as its reason, and no stages. */
export function shownFault(
  { dialect, plan, message }: UnreadablePlan,
  textsOf: TextsOf,
): ShownPlan {
  const { kind, name, namespace, uid, created } = sourceOf(dialect.plans, plan);
  const situations = [{ kind: 'Refused' }] as const;
  const none = { stages: [], waits: [], next: [] } as const;
  const fault = { phase: 'invalid', reason: message, situations, ...none } as const;
  const shown = harmless({
    dialect: dialect.name,
    kind,
    namespace,
    name,
    uid,
    created,
    id: '',
    ...fault,
  });
  return { ...shown, texts: textsOf(dialect.name) };
}

function placeOf({ cluster = '', name }: ShownPlan): string {
  return `${cluster}/${name}`;
}

/** Inspects the plans that match the filter. The other plans are not read, so a bug that such a plan triggers has no effect. */
export async function inspectAll(loaded: readonly Loaded[], parts: ViewParts, now: number) {
  const kept = loaded.flatMap((of) =>
    of.plans().flatMap((plan) => (isAskedFor(of, plan, parts, now) ? { of, plan } : [])),
  );
  const unreadable: UnreadablePlan[] = [];
  const inspected = await Promise.all(
    kept.map(async ({ of, plan }) => {
      try {
        return await inspect(of, plan, parts, now);
      } catch (error) {
        if (!(error instanceof UnreadablePlan)) throw error;
        unreadable.push(error);
        return undefined;
      }
    }),
  );
  return { inspections: inspected.filter((each) => each !== undefined), unreadable };
}

/** The dialect and the objects that the plan needs. If `plans` is absent, the plan is not compared with other plans. */
type Of = Pick<Loaded, 'dialect' | 'world'> & Partial<Pick<Loaded, 'plans'>>;

/**
 * Returns true if the plan matches the filter. For some dialects, the plan must be resolved first, because they show a
 * name that differs from the name of the object.
 */
function isAskedFor(
  { dialect, world }: Of,
  plan: KubeObject,
  { filter = {} }: ViewParts,
  now: number,
): boolean {
  const isKeptAs = (source: Source): boolean =>
    isKept({ dialect, plan, snapshot: { rollout: { source } } }, filter);
  if (isKeptAs(sourceOf(dialect.plans, plan))) return true;
  if (filter.plan === undefined) return false;
  const resolved = ifPossible(() => dialect.resolve(plan, world, now));
  return resolved !== undefined && isKeptAs(resolved.source);
}

function readingPlan<T>({ dialect }: Of, plan: KubeObject, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UnreadablePlan(dialect, plan, error);
  }
}

/**
 * The policy of plans that no UpgradePolicy covers. This command does not know the
 * `--target-deadline` of the controller, so targets have no deadline. Steps have the default
 * deadlines.
 */
const UNCOVERED: RolloutPolicy = { ...DEFAULT_POLICY, targetDeadlineMs: Number.POSITIVE_INFINITY };

/**
 * The maximum number of rounds in which `inspect` asks the questions that a decision needs. Each round may lead to new
 * questions. The number of gates that ask questions is below this limit, so only a bug can reach it.
 */
const MAX_ROUNDS = 10;

/**
 * Inspects one plan. Like the leader, asks questions until the decision needs no more answers. Rejects with
 * UnreadablePlan if Refit cannot read the plan.
 */
export async function inspect(
  of: Of,
  stored: KubeObject,
  parts: ViewParts,
  now: number,
): Promise<Inspection> {
  const { dialect, world } = of;
  const texts = parts.textsOf(dialect.name);
  const { sources, policies, fromFiles = [], countsPods = false } = parts;
  const compared = [...(of.plans?.() ?? []), ...fromFiles];
  const policy = readingPlan(of, stored, () =>
    policyOfPlan(dialect, policies.list(), stored, UNCOVERED, { world }),
  );
  const covering = policies.list().find(({ metadata }) => metadata.name === policy.name);
  const isOfFile = policies.fromFiles?.has(policy.name ?? '') === true;
  // A policy in a file may have the status of an earlier object.
  const unresolved = isOfFile ? undefined : covering && unresolvedIn(covering);
  const warnings = [
    ...readingPlan(of, stored, () => dialect.reporting?.warnings?.(stored, world, compared) ?? []),
    ...(unresolved === undefined ? [] : [unresolved]),
  ];
  const plan = readingPlan(of, stored, () => withRunBegun(of, stored, policy, now));
  const { source } = readingPlan(of, plan, () => dialect.resolve(plan, world, now));
  const answers = inspectionAnswers(sources, {
    dialect,
    plan,
    source,
    world,
    options: policy.drain.options,
    isLeaderHere: texts.advice.runsHere,
  });
  const look = (): Snapshot =>
    readingPlan(of, plan, () => sinceCreation(gather(dialect, plan, world, now, answers.known)));
  if (mayBeDecided(policy)) await answers.add([{ kind: 'decisions' }]);
  if ((policy.hooks ?? []).length > 0) await answers.addHooks();
  if (hasUnknownFailure(look())) await answers.addFailures(runNameOf(look().rollout));
  // Only the NodeRollout knows when a run began that an edit, a channel or a Secret has begun.
  const runs = await answers.runs();
  let silencing: ShownSilencing | undefined;
  // The leader asks these questions only while the plan has not ended.
  if (!isFinal(look().rollout)) {
    if ((policy.silences ?? []).length > 0) silencing = await answers.silencing();
    await answers.addHealth((policy.health?.checks ?? []).map((check) => check.name));
    await answers.addLocks(policy.coordinate ?? []);
    if (countsPods && needsPodCount(look(), policy)) await answers.addBudgetPods();
  }
  let snapshot = look();
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const seen = snapshot;
    const questions = readingPlan(of, plan, () => questionsOf(seen, policy, answers, now));
    if (questions.length === 0) break;
    await answers.add(questions);
    snapshot = look();
  }
  const ofFile = await lookAtPolicyOfFile(policies, policy.name, sources);
  const { unseen } = policies;
  const names = dialect.foreignWork?.unproven?.(world, snapshot.rollout) ?? [];
  const unproven = `who signalled ${listed(names)}: the Node has no record of a leader, so other nodes do not wait for it`;
  // If the leader cannot decide, its recorded message is shown, too: this user may get an answer that the leader does not get.
  const undecided = blockedBy(plan, 'CannotDecide');
  return {
    dialect,
    texts,
    plan,
    world,
    snapshot,
    policy,
    silencing,
    runs,
    warnings: [...warnings, ...ofFile.warnings],
    unseen: [
      ...(unseen === undefined ? [] : [unseen]),
      ...answers.unseen,
      ...ofFile.unseen,
      ...(names.length === 0 ? [] : [unproven]),
      ...(undecided === undefined ? [] : [`the leader cannot decide (CannotDecide): ${undecided}`]),
      ...[dialect.reporting?.unknownOf?.(plan)].filter((each) => each !== undefined),
    ],
  };
}

/**
 * Resolves with findings about a policy from a file. If the cluster has the policy, its conditions say what the
 * controller allows and cannot use.
 */
async function lookAtPolicyOfFile(
  { list, fromFiles }: Pick<Policies, 'list' | 'fromFiles'>,
  name: string | undefined,
  { hasNamespace }: Pick<Sources, 'hasNamespace'>,
): Promise<JobPlaceFindings> {
  const isOfFile = name !== undefined && fromFiles?.has(name) === true;
  const found = isOfFile ? list().find(({ metadata }) => metadata.name === name) : undefined;
  if (found === undefined) return { warnings: [], unseen: [] };
  const { warnings, unseen } = await lookAtJobPlaces(found.spec, hasNamespace);
  return { warnings: [...unlistedJobs(found.spec), ...warnings], unseen };
}

/**
 * Returns true if the leader reads the NodeRollouts of plans with this policy, for the decisions of people or for the
 * history. If it returns false, no user needs the right to read them.
 */
function mayBeDecided({ waves = [], health, rollsBackOnFailure }: RolloutPolicy): boolean {
  if (rollsBackOnFailure === true) return true;
  return waves.some(({ needsApproval }) => needsApproval) || (health?.checks ?? []).length > 0;
}

/** What the view of a plan is made from. It is plain data, so that it can be written to a file. */
export interface SeenPlan
  extends Pick<Inspection, 'snapshot' | 'policy' | 'silencing' | 'runs' | 'warnings' | 'unseen'>,
    Pick<ShownPlan, 'dialect' | 'namespace' | 'cluster' | 'updateConfig'> {}

/** Returns what the view of an inspected plan is made from. */
export function seenIn({ dialect, plan, ...inspection }: Inspection): SeenPlan {
  const { snapshot, policy, silencing, runs, warnings, unseen } = inspection;
  return {
    dialect: dialect.name,
    namespace: plan.metadata.namespace,
    cluster: dialect.reporting?.clusterOf?.(plan),
    updateConfig: dialect.reporting?.updateConfigOf?.(plan),
    snapshot,
    policy,
    silencing,
    runs,
    warnings,
    unseen,
  };
}

/** Returns an inspected plan as it is shown. */
export function shownAt(inspection: Inspection, now: number): ShownPlan {
  return shownPlan(seenIn(inspection), inspection.texts, now);
}

/** Returns a plan that was seen at `now` as it is shown. */
export function shownPlan(
  { snapshot, policy, runs, ...beside }: SeenPlan,
  texts: PlanTexts,
  now: number,
): ShownPlan {
  const reading = readForPeople(snapshot, policy, now, runs);
  const found = warningsOf(snapshot, policy, now, beside.warnings);
  const warnings = [...found, ...beside.warnings];
  return { ...planJson(reading, { ...beside, warnings }), texts };
}

/** Returns the questions whose answers are needed to read the plan. */
function questionsOf(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  answers: InspectionAnswers,
  now: number,
): Question[] {
  const { probes, drains } = openQuestions(snapshot, policy, now);
  const unknown = drains
    .filter(({ node }) => answers.known.drainOf(node) === undefined)
    .map((drain): Question => ({ kind: 'drain', ...drain }));
  const asked = new Map([...probes, ...unknown].map((question) => [keyOf(question), question]));
  return [...asked.values()];
}

function keyOf(question: Question): string {
  if (question.kind === 'drain-delegation') return `drain delegation ${question.target.key}`;
  return 'node' in question ? `${question.kind} ${question.node}` : question.kind;
}

/**
 * Returns the snapshot. If the plan is new, the snapshot says that its targets have waited since the plan was created.
 */
function sinceCreation(snapshot: Snapshot): Snapshot {
  const { rollout } = snapshot;
  if (rollout.phase !== 'new') return snapshot;
  const targets = withStages(rollout).map(({ target }) => ({
    ...target,
    since: rollout.source.created,
  }));
  return { ...snapshot, rollout: withTargets(rollout, targets) };
}
