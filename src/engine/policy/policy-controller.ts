/** The controller that writes the status of UpgradePolicies. Decisions read only the specs of policies. */
import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { JobNamespaces } from '../../kube/job-namespaces.ts';
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import { ifFound, isForbidden } from '../../kube/status-error.ts';
import { templateJobs } from '../../kube/template-jobs.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { type Conditions, type ConditionUpdate, withCondition } from '../../runtime/conditions.ts';
import {
  type Controller,
  fromMapping,
  generationChanged,
  type Predicate,
} from '../../runtime/run-controller.ts';
import type { Alertmanager } from '../../silences/alertmanager.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import type { PlanRef } from '../contract/plan-objects.ts';
import { coveringPolicies, describeEntry } from './choose-policy.ts';
import { missingEffects, type PolicyEffects } from './policy-effects.ts';
import { readPolicy } from './read-policy.ts';
import { hasReferences, RESOLVED_REFS, referenceProblems } from './references.ts';

export interface PolicyParts {
  readonly writer: KubeClient;
  readonly clock: Clock;
  readonly policies: Informer<UpgradePolicy>;
  /** The namespaces in which this process may create Jobs of policies. */
  readonly jobs: JobNamespaces;
  readonly plans: Readonly<Record<string, Informer>>;
  /** Returns true if the object of the dialect is a plan, or a part of one. */
  isPlan(dialect: string, object: KubeObject): boolean;
  /** Returns the plans among all objects of the kind of the dialect. */
  plansAmong(dialect: string, objects: readonly KubeObject[]): readonly PlanRef[];
  /** Which fields of a policy have an effect on plans, by the name of the dialect. */
  readonly effects: Readonly<Record<string, PolicyEffects>>;
  /** The namespace of the Secrets to which policies refer; undefined if this process does not look at them. */
  readonly secretsIn?: string;
  /** The servers of the silences of policies; undefined if this process sends them no requests. */
  readonly alertmanager?: Pick<Alertmanager, 'reach'>;
}

/** Milliseconds until the controller tries again to write a status if it lacks the right to write it. */
const DENIED_MS = 600_000;
/** Milliseconds until the controller looks again at the Secrets and namespaces to which a policy refers. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Returns the controller. It runs when the spec of a policy changes, and when a plan appears or
 * disappears.
 */
export function policyController(parts: PolicyParts): Controller {
  const { policies } = parts;
  const all = (): string[] => policies.list().map(keyOf);
  const cameOrWent =
    (dialect: string): Predicate<KubeObject> =>
    (object, previous) =>
      previous === undefined || parts.isPlan(dialect, object) !== parts.isPlan(dialect, previous);
  return {
    name: 'policies',
    sources: [
      // A change of one policy can change which plans the other policies cover, so it triggers a reconcile of all
      // policies.
      fromMapping(policies, all, generationChanged),
      ...Object.entries(parts.plans).map(([dialect, informer]) =>
        fromMapping(informer, all, cameOrWent(dialect)),
      ),
    ],
    reconcile: async (key, { abort, log }) => {
      try {
        return await report(parts, key, abort);
      } catch (error) {
        if (!isForbidden(error)) throw error;
        // Without this right, policies still apply. Only their status is missing.
        log.warn('cannot write the status of UpgradePolicies', { problem: messageOf(error) });
        return { requeueAfterMs: DENIED_MS };
      }
    },
    concurrency: 1,
    timeoutMs: 60_000,
  };
}

async function report(
  parts: PolicyParts,
  key: string,
  abort: AbortSignal,
): Promise<{ requeueAfterMs?: number }> {
  const { policies, writer, clock } = parts;
  const policy = policies.get(key);
  if (!policy) return {};
  const cluster = {
    policies: policies.list(),
    dialects: Object.keys(parts.plans),
    plans: plansOf(parts),
    jobs: parts.jobs,
    effects: parts.effects,
  };
  const looked = await referencesOf(parts, policy, abort);
  const updated = withStatus(policy, { ...cluster, references: looked }, clock.now());
  const next = looked === undefined ? {} : { requeueAfterMs: LOOK_AGAIN_MS };
  if (updated === policy) return next;
  // The policy may have been deleted. If the write conflicts, the promise rejects so that the write is tried again.
  // Otherwise there might be no event that leads to another try.
  await ifFound(writer.replace(upgradePolicies, updated, { subresource: 'status', abort }));
  return next;
}

/** Resolves with the problems of the references of the policy; undefined if it has no references. */
async function referencesOf(
  { secretsIn: namespace, writer: client, jobs, clock, alertmanager }: PolicyParts,
  policy: UpgradePolicy,
  abort: AbortSignal,
): Promise<readonly string[] | undefined> {
  const read = readPolicy(policy);
  if (namespace === undefined || read.problems.length > 0 || !hasReferences(read)) return undefined;
  const templates = templateJobs(client, jobs);
  const tools = { client, namespace, templates, alertmanager };
  return await referenceProblems(tools, read, clock.now(), abort);
}

function plansOf(parts: PolicyParts): PlanRef[] {
  return Object.entries(parts.plans).flatMap(([dialect, informer]) =>
    parts.plansAmong(dialect, informer.list()),
  );
}

export interface PolicyContext {
  readonly policies: readonly UpgradePolicy[];
  /** The names of the dialects of this process. The process knows no plans of other dialects. */
  readonly dialects: readonly string[];
  readonly plans: readonly PlanRef[];
  readonly jobs: JobNamespaces;
  readonly effects: Readonly<Record<string, PolicyEffects>>;
  /** The references of the policy that cannot be used, one clause each; undefined if the policy has no references. */
  readonly references?: readonly string[] | undefined;
}

/** The type of the condition about fields that have no effect on the plans that the policy covers. */
const NO_EFFECT = 'NoEffect';
/** The most characters of the message of a condition. */
const LONGEST_MESSAGE = 2000;
/** The status lists at most this many plans, so that the object stays small. */
const MAX_PLANS = 100;

/** Returns the policy with its status at `now`, in milliseconds; returns the same object if nothing changes. */
export function withStatus(
  policy: UpgradePolicy,
  context: PolicyContext,
  now: number,
): UpgradePolicy {
  const { generation } = policy.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const covers = coveredBy(policy, context);
  const { dialects, references } = context;
  const isOurs = (title: string): boolean => dialects.includes(title.split('/')[0] ?? '');
  // The controllers of other dialects may read Secrets and run Jobs in other namespaces, so they report about their own policies.
  const isReported = covers.length === 0 || covers.some(isOurs);
  const lacking = noEffectsOf(policy, context, covers);
  const updates = [
    isReported ? readable(policy, context.jobs) : keptReadable(policy),
    conflicted(policy, context),
    ...(lacking.length === 0 ? [] : [ineffective(lacking)]),
    ...(references === undefined || !isReported ? [] : [resolved(references)]),
  ].map((each) => ({ ...each, ...observed }));
  const isKept = references !== undefined || !isReported;
  const known = (policy.status?.conditions ?? []).filter(
    ({ type }) => (isKept || type !== RESOLVED_REFS) && (lacking.length > 0 || type !== NO_EFFECT),
  );
  const conditions = updates.reduce<Conditions>(
    (list, update) => withCondition(list, update, now),
    known,
  );
  const noEffect = lacking.length === 0 ? {} : { noEffect: lacking };
  const status = { ...observed, covers, ...noEffect, conditions: [...conditions] };
  return sameJson(status, policy.status) ? policy : { ...policy, status };
}

/**
 * Returns the plans that the policy covers. The plans of dialects that other processes serve are kept as those
 * processes wrote them.
 */
function coveredBy(policy: UpgradePolicy, { policies, dialects, plans }: PolicyContext): string[] {
  const first = (plan: PlanRef): string | undefined =>
    coveringPolicies(policies, plan)[0]?.policy.metadata.name;
  const titleOf = ({ dialect, namespace, name }: PlanRef): string =>
    [dialect, namespace ?? [], name].flat().join('/');
  const ours = plans.filter((plan) => first(plan) === policy.metadata.name).map(titleOf);
  const others = (policy.status?.covers ?? []).filter(
    (title) => !dialects.includes(title.split('/')[0] ?? ''),
  );
  return [...ours, ...others].toSorted().slice(0, MAX_PLANS);
}

type NoEffects = NonNullable<NonNullable<UpgradePolicy['status']>['noEffect']>;

/**
 * Returns which fields of the policy lack an effect on the plans that it covers, for each dialect. What other processes wrote
 * about their dialects is kept, as long as the policy covers such plans.
 */
function noEffectsOf(
  { spec, status, metadata }: UpgradePolicy,
  { dialects, effects }: PolicyContext,
  covers: readonly string[],
): NoEffects {
  const covered = new Set(covers.map((title) => title.split('/')[0] ?? ''));
  const ours = dialects.flatMap((dialect) => {
    const known = ownMember(effects, dialect);
    if (known === undefined || !covered.has(dialect)) return [];
    const message = missingEffects(spec, dialect, known).join('. ').slice(0, LONGEST_MESSAGE);
    return message === '' ? [] : [{ dialect, message }];
  });
  const isPresent = status?.observedGeneration === metadata.generation;
  const others = (status?.noEffect ?? []).filter(
    ({ dialect }) => isPresent && !dialects.includes(dialect) && covered.has(dialect),
  );
  return [...ours, ...others].toSorted((a, b) => (a.dialect < b.dialect ? -1 : 1));
}

/** Returns the condition about fields that have no effect. A policy whose fields all have one lacks the condition. */
function ineffective(lacking: NoEffects): ConditionUpdate {
  const message = lacking
    .map((each) => each.message)
    .join('. ')
    .slice(0, LONGEST_MESSAGE);
  return { type: NO_EFFECT, status: 'True', reason: 'FieldsWithoutEffect', message };
}

/**
 * Returns the condition that another process has written about the present spec. Each process has its own list of
 * namespaces for Jobs, so only a process that carries out plans of the policy judges them by its list.
 */
function keptReadable(policy: UpgradePolicy): ConditionUpdate {
  const { metadata, status } = policy;
  const known = status?.conditions?.find(({ type }) => type === 'Accepted');
  if (known === undefined || known.observedGeneration !== metadata.generation)
    return readable(policy, undefined);
  const { type, reason = '', message = '' } = known;
  return { type, status: known.status, reason, message };
}

function readable(policy: UpgradePolicy, jobs: JobNamespaces | undefined): ConditionUpdate {
  const { problems } = readPolicy(policy, jobs);
  const [first] = problems;
  if (!first)
    return {
      type: 'Accepted',
      status: 'True',
      reason: 'Accepted',
      message: 'every field is valid',
    };
  const message = problems.map((each) => each.message).join('; ');
  return { type: 'Accepted', status: 'False', reason: first.code, message };
}

/** Returns the condition about the Secrets, namespaces and other tools to which the policy refers. */
function resolved(problems: readonly string[]): ConditionUpdate {
  if (problems.length === 0)
    return {
      type: RESOLVED_REFS,
      status: 'True',
      reason: RESOLVED_REFS,
      message:
        'every Secret can be read, the Jobs of all hooks and health checks can be created, each Alertmanager of silences answers, and no tool of coordinate is known to be missing',
    };
  return {
    type: RESOLVED_REFS,
    status: 'False',
    reason: 'UnusableReference',
    message: problems.join('; ').slice(0, LONGEST_MESSAGE),
  };
}

/**
 * Returns the condition about policies with an equal entry. If two policies have an equal entry, only the policy that
 * does not apply reports the conflict. The entries are compared and not the covered plans, because each process knows
 * only its own plans.
 */
function conflicted(policy: UpgradePolicy, { policies }: PolicyContext): ConditionUpdate {
  const earlier = policies.filter(({ metadata }) => metadata.name < policy.metadata.name);
  const lost = entriesOf(policy).flatMap((entry) => {
    const first = earlier
      .filter((each) => entriesOf(each).includes(entry))
      .map(({ metadata }) => metadata.name);
    return first.length > 0
      ? [
          `ignored for ${entry}: UpgradePolicy ${first.toSorted()[0]} has the same entry, and its name comes first in alphabetical order`,
        ]
      : [];
  });
  return lost.length > 0
    ? { type: 'Conflicted', status: 'True', reason: 'SameEntry', message: lost.join('; ') }
    : {
        type: 'Conflicted',
        status: 'False',
        reason: 'NoConflict',
        message: 'no other policy has the same entry',
      };
}

function entriesOf({ spec: { plans = [{}] } }: UpgradePolicy): string[] {
  return plans.map((entry) => describeEntry(entry, 'all plans'));
}
