/** The controller that writes the status of UpgradePolicies. Decisions read only the specs of policies. */
import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { JobNamespaces } from '../../kube/job-namespaces.ts';
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import { ifFound, isForbidden } from '../../kube/status-error.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { type Conditions, type ConditionUpdate, withCondition } from '../../runtime/conditions.ts';
import {
  type Controller,
  fromMapping,
  generationChanged,
  type Predicate,
} from '../../runtime/run-controller.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { coveringPolicies, describeEntry, type PlanRef } from './choose-policy.ts';
import { readPolicy } from './read-policy.ts';

export interface PolicyParts {
  readonly writer: KubeClient;
  readonly clock: Clock;
  readonly policies: Informer<UpgradePolicy>;
  /** The namespaces in which this process may create Jobs of policies. */
  readonly jobs: JobNamespaces;
  readonly plans: Readonly<Record<string, Informer>>;
  isPlan(dialect: string, object: KubeObject): boolean;
}

/** Milliseconds until the controller tries again to write a status if it lacks the right to write it. */
const DENIED_MS = 600_000;

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
        await report(parts, key, abort);
        return {};
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

async function report(parts: PolicyParts, key: string, abort: AbortSignal): Promise<void> {
  const { policies, writer, clock } = parts;
  const policy = policies.get(key);
  if (!policy) return;
  const cluster = {
    policies: policies.list(),
    dialects: Object.keys(parts.plans),
    plans: plansOf(parts),
    jobs: parts.jobs,
  };
  const updated = withStatus(policy, cluster, clock.now());
  if (updated === policy) return;
  // The policy may have been deleted. If the write conflicts, the promise rejects so that the write is tried again.
  // Otherwise there might be no event that leads to another try.
  await ifFound(writer.replace(upgradePolicies, updated, { subresource: 'status', abort }));
}

function plansOf(parts: PolicyParts): PlanRef[] {
  return Object.entries(parts.plans).flatMap(([dialect, informer]) =>
    informer
      .list()
      .filter((object) => parts.isPlan(dialect, object))
      .map(({ metadata: { namespace, name } }) => ({ dialect, namespace, name })),
  );
}

export interface PolicyContext {
  readonly policies: readonly UpgradePolicy[];
  /** The names of the dialects of this process. The process knows no plans of other dialects. */
  readonly dialects: readonly string[];
  readonly plans: readonly PlanRef[];
  readonly jobs: JobNamespaces;
}

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
  const updates = [readable(policy, context), conflicted(policy, context)].map((each) => ({
    ...each,
    ...observed,
  }));
  const known = policy.status?.conditions ?? [];
  const conditions = updates.reduce<Conditions>(
    (list, update) => withCondition(list, update, now),
    known,
  );
  const status = { ...observed, covers: coveredBy(policy, context), conditions: [...conditions] };
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

function readable(policy: UpgradePolicy, { jobs }: PolicyContext): ConditionUpdate {
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
