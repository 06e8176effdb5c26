/** What a preview finds beside the decision: the rule of the policy, and drains. */
import { factsOf } from '../../engine/gates/types.ts';
import { coveringPolicies, type PlanRef } from '../../engine/policy/choose-policy.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import { Semaphore } from '../../util/waits.ts';
import type { Sources } from '../status/answers.ts';
import { type Policies, policyOf } from '../status/load.ts';
import type { Inspection } from '../status/observe.ts';

export type PolicyRule = ReturnType<typeof policyRule>;

/** Undefined if no policy covers the plan. */
export function policyRule(policies: Policies, dialect: string, plan: KubeObject) {
  const { name: held } = policyOf(policies, { name: dialect }, plan);
  if (held === undefined) return undefined;
  const { name, namespace } = plan.metadata;
  const ref: PlanRef = { dialect, namespace, name };
  const [first, ...others] = coveringPolicies(policies.list(), ref);
  const wider = others.map(({ policy }) => policy.metadata.name);
  const over = wider.length > 0 ? `, before ${wider.join(', ')}` : '';
  /** Why it applies, as half a sentence about the policy. */
  const rule = `${entryOf(first?.rank ?? 0, ref)}${over}`;
  return { name: held, rule };
}

/** The rank is a sum: see choose-policy.ts. */
function entryOf(rank: number, { dialect, namespace, name }: PlanRef): string {
  const given = [
    ...(rank % 2 === 1 ? [`dialect ${dialect}`] : []),
    ...(rank % 4 >= 2 ? [`namespace ${namespace}`] : []),
    ...(rank >= 4 ? [`name ${name}`] : []),
  ];
  return given.length === 0 ? 'covers every plan' : `covers plans with ${given.join(', ')}`;
}

export type PlanDrainPreview = NonNullable<Awaited<ReturnType<typeof lookAtDrains>>>;

/** Each needs some requests, and nobody reads a longer answer. */
const MOST_NODES = 200;
const AT_ONCE = 8;

/** Undefined if the leader drains nothing of the plan; never rejects. */
export async function lookAtDrains({ snapshot, policy }: Inspection, sources: Pick<Sources, 'drainPreview'>) {
  if (!policy.drain.enabled) return undefined;
  const pending = snapshot.rollout.stages.flatMap(({ targets }) => targets.filter(({ state }) => state === 'pending'));
  const byNode = new Map(
    pending.flatMap((target) => {
      const { node } = factsOf(snapshot, target);
      return node ? [[node.name, target.name] as const] : [];
    }),
  );
  if (byNode.size === 0) return undefined;
  const some = [...byNode].slice(0, MOST_NODES);
  const places = new Semaphore(AT_ONCE);
  const looks = await Promise.allSettled(
    some.map(async ([node, target]) => ({
      target,
      drainPreview: await places.within(async () => await sources.drainPreview(node, policy.drain.options)),
    })),
  );
  const seen = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  const problem = looks.find((look) => look.status === 'rejected')?.reason as unknown;
  const rest = byNode.size - some.length;
  const unseen =
    problem === undefined ? (rest > 0 ? `${rest} more nodes were not checked` : undefined) : messageOf(problem);
  return {
    nodes: seen.length,
    evictable: seen.reduce((sum, { drainPreview }) => sum + drainPreview.evictable, 0),
    /** Only nodes that cannot be drained now. */
    blocked: seen
      .filter(({ drainPreview }) => drainPreview.obstacles.length + drainPreview.refused.length > 0)
      .map(({ target, drainPreview: { obstacles, refused } }) => ({ target, budgets: obstacles, refused })),
    /** Why nodes were not checked. */
    unseen,
  };
}
