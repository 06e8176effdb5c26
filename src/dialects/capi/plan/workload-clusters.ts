/** Serves each workload cluster for itself: its kubeconfig is in the Secret that Cluster API keeps for it. */
import type { ClusterConfig, UserConfig } from '../../../kube/config/cluster-config.ts';
import { parseClusterConfig } from '../../../kube/config/kubeconfig.ts';
import { keyOf, type Secret } from '../../../kube/resources.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import type { Informer } from '../../../kube/watch/informer.ts';
import { sleep } from '../../../util/clock.ts';
import { RefitError } from '../../../util/errors.ts';
import { sameJson } from '../../../util/json.ts';
import type { Tools } from '../../../util/tools.ts';
import { aborted } from '../../../util/waits.ts';
import type { ClusterOf, NodeCluster } from './progress.ts';

const LABEL = 'cluster.x-k8s.io/cluster-name';
const SUFFIX = '-kubeconfig';

/** For an informer. Of any type, as Cluster API takes those of users, too. Of others, such as the keys of a cluster, nothing is kept. */
export const KUBECONFIG_SECRETS = {
  labelSelector: LABEL,
  transform({ metadata, data }: Secret): Secret {
    const { labels, annotations: _, ...kept } = metadata;
    const isWanted = metadata.name === `${labels?.[LABEL]}${SUFFIX}`;
    return isWanted
      ? { metadata: kept, data: { value: data?.['value'] ?? '' } }
      : { metadata: kept };
  },
};

export interface ServedCluster extends NodeCluster {
  problem(): string | undefined;
  /** Until `abort`, or rejects if it cannot go on. Nothing is sent afterwards. */
  run(abort: AbortSignal): Promise<void>;
}

const clusterOf = (key: string): string => key.slice(0, -SUFFIX.length);

interface Member {
  /** In base64; undefined once the Secret is gone. */
  kubeconfig: string | undefined;
  readonly stop: AbortController;
  /** Absent if the kubeconfig is of no use. Its user is replaced while it is in use. */
  config?: (ClusterConfig & { user: UserConfig }) | undefined;
  problem: string;
  served?: ServedCluster | undefined;
  ended?: Promise<void>;
}

/** After a failure, and while there is no room. */
const [AGAIN_MS, FULL_MS] = [5_000, 60_000];
/** Each has watches, connections and a lease to renew. */
export const MOST_CLUSTERS = 500;
/** Memory is shared: no answer of one cluster may take much of it. */
export const CLIENT_LIMITS = { mostBytes: 16 * 1024 * 1024, mostItems: 20_000 };

/** What happens to one cluster concerns no other. `name` is `<namespace>/<name>` of the Cluster. */
export function workloadClusters(
  secrets: Pick<Informer<Secret>, 'addHandler'>,
  serve: (name: string, config: ClusterConfig) => ServedCluster,
  { clock, log }: Pick<Tools, 'clock' | 'log'>,
) {
  const members = new Map<string, Member>();
  const isFull = (): boolean =>
    [...members.values()].filter(({ served }) => served).length >= MOST_CLUSTERS;

  const attend = async (
    key: string,
    member: Member,
    before: Member | undefined,
    abort: AbortSignal,
  ) => {
    const cluster = clusterOf(key);
    // Never two for one cluster: the next one starts when nothing of the last one runs.
    await before?.ended;
    // Only another text reads differently.
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
    if (members.get(key) === member) members.delete(key);
  };
  const follow = async (
    key: string,
    kubeconfig: string | undefined,
    abort: AbortSignal,
  ): Promise<void> => {
    const before = members.get(key);
    if (before?.kubeconfig === kubeconfig) return;
    const member: Member = {
      kubeconfig,
      stop: new AbortController(),
      problem: 'its Secret has just changed',
    };
    const text = Buffer.from(kubeconfig ?? '', 'base64').toString();
    if (kubeconfig !== undefined)
      member.config = await parseClusterConfig(text, `Secret ${key}`).catch((error: unknown) => {
        member.problem = describeProblem(error).message;
        log.warn('cannot serve a workload cluster', {
          cluster: clusterOf(key),
          problem: member.problem,
        });
        return undefined;
      });
    const user = {};
    if (
      before?.config &&
      member.config &&
      sameJson({ ...before.config, user }, { ...member.config, user })
    ) {
      // Some tokens last for minutes: the work goes on, and its next request has the new one.
      [before.kubeconfig, before.config.user] = [kubeconfig, member.config.user];
      return;
    }
    before?.stop.abort(new Error('the kubeconfig of the cluster changed'));
    members.set(key, member);
    member.ended = attend(key, member, before, AbortSignal.any([abort, member.stop.signal]));
  };
  let followed = Promise.resolve();
  /** One after the other: the last one counts. */
  const change = (secret: Secret, kubeconfig: string | undefined, abort: AbortSignal): void => {
    followed = followed.then(async () => await follow(keyOf(secret), kubeconfig, abort));
  };
  const of: ClusterOf = ({ metadata: { namespace = 'default' }, spec }) => {
    const name = `${namespace}/${spec?.clusterName}`;
    const { served, problem } = members.get(name + SUFFIX) ?? {
      problem: `no Secret ${name}${SUFFIX} was found`,
    };
    const reason = served ? served.problem() : problem;
    if (served && reason === undefined) return served;
    throw new RefitError('REFIT_UNREACHABLE', `cluster ${name} cannot be asked: ${reason}`);
  };
  const run = async (abort: AbortSignal): Promise<void> => {
    const update = (secret: Secret): void => change(secret, secret.data?.['value'], abort);
    secrets.addHandler({
      added: update,
      updated: update,
      deleted: (secret) => change(secret, undefined, abort),
    });
    await aborted(abort);
    await followed;
    await Promise.all([...members.values()].map(async ({ ended }) => await ended));
  };
  return { of, run };
}
