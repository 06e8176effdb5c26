/** Previews all drains of a plan: how many pods would be evicted, and what blocks them, by node. */
import type { BlockingBudget } from '../../drain/budgets.ts';
import type { RefusedPod } from '../../drain/pods.ts';
import { factsOf } from '../../engine/gates/context.ts';
import { messageOf } from '../../util/errors.ts';
import { Semaphore } from '../../util/semaphore.ts';
import type { Inspection } from '../status/observe.ts';
import type { Sources } from '../status/sources.ts';

export interface PlanDrainPreview {
  /** Nodes that were checked. */
  readonly nodes: number;
  /** Pods that would be evicted. */
  readonly evictable: number;
  /** Only nodes that cannot be drained now. */
  readonly blocked: readonly BlockedDrain[];
  /** Why nodes were not checked. */
  readonly unseen?: string;
}

interface BlockedDrain {
  readonly target: string;
  readonly budgets: readonly BlockingBudget[];
  readonly refused: readonly RefusedPod[];
}

/** Each needs some requests, and nobody reads a longer answer. */
const MOST_NODES = 200;
const AT_ONCE = 8;

/** Undefined if the leader drains nothing of the plan; never rejects. */
export async function lookAtDrains(
  { snapshot, policy }: Inspection,
  sources: Pick<Sources, 'drainPreview'>,
): Promise<PlanDrainPreview | undefined> {
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
    blocked: seen
      .filter(({ drainPreview }) => drainPreview.obstacles.length + drainPreview.refused.length > 0)
      .map(({ target, drainPreview: { obstacles, refused } }) => ({ target, budgets: obstacles, refused })),
    ...(unseen === undefined ? {} : { unseen }),
  };
}
