/** Serves each workload cluster separately. Its kubeconfig is in the Secret that Cluster API keeps for it. */
import { CLUSTER_NAME } from '../../../api/capi/machine.ts';
import type { ClusterConfig } from '../../../kube/config/cluster-config.ts';
import { keyOf, type Secret } from '../../../kube/resources.ts';
import type { Informer } from '../../../kube/watch/informer.ts';
import { RefitError } from '../../../util/errors.ts';
import { sameJson } from '../../../util/json.ts';
import type { BasicTools } from '../../../util/tools.ts';
import { aborted } from '../../../util/waits.ts';
import type { ClusterOf } from './progress.ts';
import {
  attend,
  createMember,
  type Member,
  MOST_CLUSTERS,
  type ServedCluster,
} from './workload-member.ts';

const SUFFIX = '-kubeconfig';

/** Returns the name of the Secret in which Cluster API stores the kubeconfig of the Cluster with this name. */
export function kubeconfigSecretOf(cluster: string): string {
  return `${cluster}${SUFFIX}`;
}

/**
 * The selection of an informer for Secrets. It includes Secrets of any type, because Cluster API also uses Secrets that
 * users created. The cache does not keep the data of Secrets without a kubeconfig, such as the keys of a cluster.
 */
export const KUBECONFIG_SECRETS = {
  labelSelector: CLUSTER_NAME,
  transform({ metadata, data }: Secret): Secret {
    const { labels, annotations: _, ...kept } = metadata;
    const isWanted = metadata.name === kubeconfigSecretOf(labels?.[CLUSTER_NAME] ?? '');
    return isWanted
      ? { metadata: kept, data: { value: data?.['value'] ?? '' } }
      : { metadata: kept };
  },
};

const clusterOf = (key: string): string => key.slice(0, -SUFFIX.length);

/** The limits for each answer of a cluster, in bytes and in listed items, because all clusters share the memory of this process. */
export const CLIENT_LIMITS = { mostBytes: 16 * 1024 * 1024, mostItems: 20_000 };

/**
 * Serves each cluster separately, so that a problem of one cluster does not affect the other clusters. `name` is
 * `<namespace>/<name>` of the Cluster.
 */
export function workloadClusters(
  secrets: Pick<Informer<Secret>, 'addHandler'>,
  serve: (name: string, config: ClusterConfig) => ServedCluster,
  { clock, log }: BasicTools,
) {
  const members = new Map<string, Member>();
  const isFull = (): boolean =>
    [...members.values()].filter(({ served }) => served).length >= MOST_CLUSTERS;

  /**
   * Serves a cluster after all work of the previous member for this cluster has ended, so that two members never serve
   * the cluster at the same time.
   */
  const attendAfter = async (
    before: Member | undefined,
    key: string,
    member: Member,
    abort: AbortSignal,
  ): Promise<void> => {
    await before?.ended;
    await attend(member, { serve, isFull, clock, log }, abort);
    if (members.get(key) === member) members.delete(key);
  };
  const follow = async (
    key: string,
    kubeconfig: string | undefined,
    abort: AbortSignal,
  ): Promise<void> => {
    const before = members.get(key);
    if (before?.kubeconfig === kubeconfig) return;
    const member = await createMember(clusterOf(key), kubeconfig, key, { log });
    if (before?.config && member.config && isSameButUser(before.config, member.config)) {
      // Only the credentials of the user have changed. This happens often, because some tokens are valid for minutes only. The work
      // continues, and its next request uses the new credentials.
      before.kubeconfig = kubeconfig;
      before.config.user = member.config.user;
      return;
    }
    before?.stop.abort(new Error('the kubeconfig of the cluster changed'));
    members.set(key, member);
    const stopped = AbortSignal.any([abort, member.stop.signal]);
    member.ended = attendAfter(before, key, member, stopped);
  };
  let followed = Promise.resolve();
  /** Handles the changes one after the other, so that the last change decides. */
  const change = (secret: Secret, kubeconfig: string | undefined, abort: AbortSignal): void => {
    followed = followed.then(async () => await follow(keyOf(secret), kubeconfig, abort));
  };
  const of: ClusterOf = ({ metadata: { namespace = 'default' }, spec }) => {
    const name = `${namespace}/${spec?.clusterName}`;
    const secret = kubeconfigSecretOf(name);
    const { served, problem } = members.get(secret) ?? {
      problem: `no Secret ${secret} was found`,
    };
    const reason = served ? served.problem() : problem;
    if (served && reason === undefined) return served;
    throw new RefitError('REFIT_UNREACHABLE', `cannot connect to cluster ${name}: ${reason}`);
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

function isSameButUser(one: ClusterConfig, other: ClusterConfig): boolean {
  return sameJson({ ...one, user: {} }, { ...other, user: {} });
}
