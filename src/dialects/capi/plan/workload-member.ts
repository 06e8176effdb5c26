/** Serves one workload cluster with one version of its kubeconfig, and starts again after failures. */
import type { ClusterConfig, UserConfig } from '../../../kube/config/cluster-config.ts';
import { parseClusterConfig } from '../../../kube/config/kubeconfig.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import { sleep } from '../../../util/clock.ts';
import type { BasicTools, Tools } from '../../../util/tools.ts';
import { aborted } from '../../../util/waits.ts';
import type { NodeCluster } from './progress.ts';

export interface ServedCluster extends NodeCluster {
  problem(): string | undefined;
  /** Serves the cluster until `abort` fires. Rejects if it cannot continue. Sends no request after the promise has settled. */
  run(abort: AbortSignal): Promise<void>;
}

/** A workload cluster with one version of its kubeconfig. */
export interface Member {
  /** The key of the Cluster, `<namespace>/<name>`. */
  readonly cluster: string;
  /** The kubeconfig in base64; undefined after the Secret was deleted. */
  kubeconfig: string | undefined;
  readonly stop: AbortController;
  /**
   * The connection; undefined if the kubeconfig cannot be used. Its user is replaced while the
   * cluster is served, if only the credentials in the Secret change.
   */
  config?: (ClusterConfig & { user: UserConfig }) | undefined;
  /** The reason why the cluster is not served. */
  problem: string;
  /** The parts that serve the cluster; undefined while it is not served. */
  served?: ServedCluster | undefined;
  /** Resolves when no part of this member runs any more. */
  ended?: Promise<void>;
}

export interface MemberParts extends BasicTools {
  /** Starts to serve a cluster. `name` is `<namespace>/<name>` of the Cluster. */
  readonly serve: (name: string, config: ClusterConfig) => ServedCluster;
  /** Returns true while the number of served clusters is at its limit. */
  readonly isFull: () => boolean;
}

/** Milliseconds until a cluster is tried again after a failure. */
const AGAIN_MS = 5_000;
/**
 * The milliseconds after which Refit tries again to serve a cluster that it did not serve because the limit was
 * reached.
 */
const FULL_MS = 60_000;
/**
 * The most clusters that are served at the same time. The number is limited because each cluster needs watches,
 * connections and a Lease that must be renewed.
 */
export const MOST_CLUSTERS = 500;

/**
 * Returns a member that is not served yet. If the kubeconfig cannot be read, its `config` is undefined and its
 * `problem` says why. `secret` is the name of the Secret in that sentence.
 */
export async function createMember(
  cluster: string,
  kubeconfig: string | undefined,
  secret: string,
  { log }: Pick<Tools, 'log'>,
): Promise<Member> {
  const stop = new AbortController();
  const member: Member = { cluster, kubeconfig, stop, problem: 'its Secret has just changed' };
  if (kubeconfig === undefined) return member;
  const text = Buffer.from(kubeconfig, 'base64').toString();
  try {
    member.config = await parseClusterConfig(text, `Secret ${secret}`);
  } catch (error) {
    member.problem = describeProblem(error).message;
    log.warn('cannot serve a workload cluster', { cluster, problem: member.problem });
  }
  return member;
}

/** Serves the cluster until `abort` fires. Returns at once if its Secret is gone. Never rejects. */
export async function attend(
  member: Member,
  { serve, isFull, clock, log }: MemberParts,
  abort: AbortSignal,
): Promise<void> {
  const { cluster } = member;
  // The kubeconfig cannot be parsed, so the member only waits. When the Secret changes, another member replaces this
  // one.
  if (member.kubeconfig !== undefined && !member.config) await aborted(abort);
  while (member.config && !abort.aborted) {
    try {
      if (isFull())
        throw new Error(`${MOST_CLUSTERS} other clusters are served, which is the limit`);
      member.served = serve(cluster, member.config);
      await member.served.run(abort);
    } catch (error) {
      member.problem = describeProblem(error).message;
      if (!abort.aborted)
        log.warn('cannot serve a workload cluster', { cluster, problem: member.problem });
    }
    member.served = undefined;
    await sleep(clock, isFull() ? FULL_MS : AGAIN_MS, abort).catch(() => undefined);
  }
}
