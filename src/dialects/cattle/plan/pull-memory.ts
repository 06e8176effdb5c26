/**
 * Remembers the pulls that have ended, because Kubernetes deletes their Jobs. A later leader does not know them. It pulls
 * once more, which ends at once if the node has the image.
 */
import type { Pull } from './pull-job.ts';

export interface PullMemory {
  done(pull: Pull): void;
  isDone(pull: Pull): boolean;
  failed(pull: Pull): void;
  /** Returns true if an earlier pull of the same image on the node has failed. */
  hasFailed(pull: Pull): boolean;
  /** Remembers why the pull makes no progress, because the pod is deleted when its Job fails. */
  told(pull: Pull, words: string): void;
  wordsOf(pull: Pull): string | undefined;
}

interface Known {
  isDone?: true;
  hasFailed?: true;
  words?: string;
}

/** What is known of the present pulls of one Plan, by the uid of the Node. */
interface PlanPulls {
  readonly wanted: string;
  readonly nodes: Map<string, Known>;
}

export function createPullMemory(): PullMemory {
  const plans = new Map<string, PlanPulls>();
  const of = ({ plan, hash, image, node }: Pull): Known => {
    const uid = plan.metadata.uid ?? '';
    const wanted = `${hash} ${image}`;
    const known = plans.get(uid);
    // Pulls for an earlier hash or image are forgotten, so that the memory of a Plan stays small.
    const pulls = known?.wanted === wanted ? known : { wanted, nodes: new Map<string, Known>() };
    if (pulls !== known) plans.set(uid, pulls);
    return pulls.nodes.getOrInsertComputed(node.metadata.uid ?? node.metadata.name, () => ({}));
  };
  return {
    done: (pull) => {
      of(pull).isDone = true;
    },
    isDone: (pull) => of(pull).isDone === true,
    failed: (pull) => {
      of(pull).hasFailed = true;
    },
    hasFailed: (pull) => of(pull).hasFailed === true,
    told: (pull, words) => {
      of(pull).words = words;
    },
    wordsOf: (pull) => of(pull).words,
  };
}
