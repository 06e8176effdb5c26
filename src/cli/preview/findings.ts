/** Finds what a preview shows in addition to the decision: why the policy applies, and what would block drains. */

import { type DrainPreview, isHeldBack } from '../../drain/drain-preview.ts';
import { describeRefusedPods } from '../../drain/pods.ts';
import { budgetWarning } from '../../engine/explain/drain-warnings.ts';
import { factsOf } from '../../engine/gates/types.ts';
import { answerOf } from '../../engine/model/asked.ts';
import { isUpgradedByLaterStage, type Rollout, withStages } from '../../engine/model/rollout.ts';
import { coveringPolicies, describeEntry } from '../../engine/policy/choose-policy.ts';
import { needsBudgetPods } from '../../engine/schedule/fewest-first.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import { semaphore } from '../../util/waits.ts';
import type { Sources } from '../status/inspection-sources.ts';
import type { Policies } from '../status/load.ts';
import type { Inspection } from '../status/observe.ts';

export interface PolicyRule {
  readonly name: string;
  /** A clause that says why the policy applies. Its subject is the policy. */
  readonly rule: string;
}

/** Returns the policy of the plan and why it applies; undefined if no policy covers the plan. */
export function policyRule(
  policies: Policies,
  dialect: string,
  { metadata: { name, namespace } }: KubeObject,
): PolicyRule | undefined {
  const [first, ...others] = coveringPolicies(policies.list(), { dialect, namespace, name });
  if (!first) return undefined;
  const wider = others.map(({ policy }) => policy.metadata.name);
  const over = wider.length > 0 ? `, instead of ${wider.join(', ')}` : '';
  const { name: chosen } = first.policy.metadata;
  const origin =
    policies.fromFiles?.has(chosen) === true
      ? '; it is taken from the file, as if you had applied it'
      : '';
  const rule = `covers ${describeEntry(first.entry, 'every plan')}${over}${origin}`;
  return { name: chosen, rule };
}

/**
 * Returns a sentence about the order of the workers. Undefined if the number of pods does not decide the order, or if
 * the pods could not be counted.
 */
export function orderSentence({ snapshot, policy }: Inspection): string | undefined {
  const isCounted = answerOf(snapshot.outside.budgetPods)?.byNode !== undefined;
  if (!isCounted || !needsBudgetPods(snapshot, policy)) return undefined;
  return `among the workers that may start next, those with the fewest pods covered by a PodDisruptionBudget now start first (\`drain.startWith\` of UpgradePolicy ${policy.name})`;
}

export interface PlanDrainPreview {
  /** Number of Nodes that were checked. */
  readonly nodes: number;
  /** Number of pods that would be evicted, or deleted. */
  readonly evictable: number;
  /** True if the pods are deleted, whatever their PodDisruptionBudgets say. */
  readonly deletes?: true;
  /** The Nodes that do not start now, because their drain is prevented. */
  readonly blocked: readonly BlockedDrain[];
  /** Warnings about Nodes whose drain starts, but may not end; absent if there are none. */
  readonly warnings?: readonly string[] | undefined;
  /** The reason why some Nodes were not checked; undefined if all were checked. */
  readonly unseen: string | undefined;
}

interface BlockedDrain {
  readonly target: string;
  readonly budgets: DrainPreview['obstacles'];
  readonly refused: DrainPreview['refused'];
  /** What is refused and who can allow it, as a sentence; absent if no pod is refused. */
  readonly refusal?: string;
}

/** The maximum number of nodes to check. Each node needs several requests, and nobody reads a longer list. */
const MOST_NODES = 200;
const AT_ONCE = 8;

function pendingTargets(rollout: Rollout) {
  return withStages(rollout).filter(({ target }) => target.state === 'pending');
}

/** Previews the drains of the nodes that have not started. Returns undefined if the plan drains no node. Never rejects. */
export async function lookAtDrains(
  { snapshot, policy }: Inspection,
  sources: Pick<Sources, 'drainPreview'>,
): Promise<PlanDrainPreview | undefined> {
  const { enabled, byWork = false, cordonOnly = false } = policy.drain;
  if (cordonOnly || !(enabled || byWork)) return undefined;
  const byNode = new Map(
    pendingTargets(snapshot.rollout).flatMap(({ stage, target }) => {
      const { node, isThere } = factsOf(snapshot, target);
      // A node that already runs the version is not drained.
      const isDone = isThere || isUpgradedByLaterStage(snapshot.rollout, stage, target);
      return node && !isDone ? [[node.name, target.name] as const] : [];
    }),
  );
  if (byNode.size === 0) return undefined;
  const some = [...byNode].slice(0, MOST_NODES);
  const withSlot = semaphore(AT_ONCE);
  const looks = await Promise.allSettled(
    some.map(async ([node, target]) => ({
      target,
      drainPreview: await withSlot(
        async () => await sources.drainPreview(node, policy.drain.options),
      ),
    })),
  );
  const seen = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  const problem = looks.find((look) => look.status === 'rejected')?.reason as unknown;
  const rest = byNode.size - some.length;
  const omission = rest > 0 ? `${rest} more nodes were not checked` : undefined;
  const unseen = problem === undefined ? omission : messageOf(problem);
  const { options } = policy.drain;
  const warnings = seen.flatMap(({ target, drainPreview }) => [
    ...budgetWarning({ name: target }, drainPreview, policy),
    // Only the leader holds a node back whose drain is refused. The work itself starts, and its drain fails.
    ...(byWork && drainPreview.refused.length > 0
      ? [
          `${target} starts, but its drain fails: ${describeRefusedPods(drainPreview.refused, options)}`,
        ]
      : []),
  ]);
  const waitsForBudgets = policy.drain.waitsForBudgets === true;
  return {
    nodes: seen.length,
    evictable: seen.reduce((sum, { drainPreview }) => sum + drainPreview.evictable, 0),
    ...(policy.drain.options.deletes === true ? { deletes: true } : {}),
    blocked: seen
      .filter(({ drainPreview }) => enabled && isHeldBack(drainPreview, policy.drain))
      .map(({ target, drainPreview: { obstacles, refused } }) => ({
        target,
        budgets: waitsForBudgets ? obstacles : [],
        refused,
        ...(refused.length > 0 ? { refusal: describeRefusedPods(refused, options) } : {}),
      })),
    ...(warnings.length === 0 ? {} : { warnings }),
    unseen,
  };
}
