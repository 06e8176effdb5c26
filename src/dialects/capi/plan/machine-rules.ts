/**
 * Reads the rules of an update from the objects of Cluster API: which object pauses the update, and how the drain
 * treats each pod.
 */
import { clusters, type DrainRule, drainRules, type Machine } from '../../../api/capi/machine.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { matchesLabels } from '../../../kube/selectors.ts';
import { isForbidden, isNotFound } from '../../../kube/status-error.ts';
import { unlessError } from '../../../util/errors.ts';
import type { Logger } from '../../../util/log.ts';
import { onceForEach } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import type { MachineUpdate } from './machine-update.ts';

export type RulesOf = (
  machine: Machine,
  abort: AbortSignal,
) => Promise<NonNullable<MachineUpdate['rules']>>;

/**
 * The limit for the characters of the rules in the request. If the annotations of a Node were too large, nobody could write
 * the Node any more, not even to pause its update.
 */
const MOST_CHARACTERS = 64 * 1024;

const unlessUntold = unlessError((error) => isForbidden(error) || isNotFound(error));

/**
 * Returns a function that reads the rules for a Machine. It ignores Clusters and MachineDrainRules that do not exist or that
 * Refit may not read, and logs that once. It rejects if the API server does not answer.
 */
export function machineRules(management: KubeClient, log: Pick<Logger, 'info'>): RulesOf {
  let isSaid = false;
  /** Returns the lists of rules by namespace. Each namespace is listed once for all Machines of one reconcile. */
  const listed = onceForEach(
    (_run: AbortSignal) => new Map<string, Promise<{ items: DrainRule[] } | undefined>>(),
  );
  return async ({ metadata, spec }, abort) => {
    const { name, namespace, annotations = {}, labels } = metadata;
    const { clusterName = '', deletion: { nodeDrainTimeoutSeconds: drainSeconds = 0 } = {} } =
      spec ?? {};
    const [cluster, found] = await Promise.all([
      unlessUntold(management.get(clusters, clusterName, { namespace, abort })),
      listed(abort).getOrInsertComputed(String(namespace), () =>
        unlessUntold(management.listAll(drainRules, { namespace, abort })),
      ),
    ]);
    if (!isSaid && !(cluster && found))
      log.info('cannot read Clusters or MachineDrainRules: updates ignore them');
    isSaid ||= !(cluster && found);
    const itself = `Machine ${namespace}/${name}`;
    const own = 'cluster.x-k8s.io/paused' in annotations && itself;
    // Cluster API drains the node of a deleted Machine itself, and then deletes it.
    const gone = metadata.deletionTimestamp !== undefined && `${itself}, which is being deleted,`;
    const paused = gone || (cluster?.spec?.paused ? `Cluster ${namespace}/${clusterName}` : own);
    const isMeant = ({ spec: { machines: selectors = [{}] } }: DrainRule): boolean =>
      selectors.some(
        ({ selector = {}, clusterSelector = {} }) =>
          matchesLabels(selector, labels) &&
          matchesLabels(clusterSelector, cluster?.metadata.labels),
      );
    // Cluster API uses the first rule, by name, that selects a pod.
    const rules = (found?.items ?? []).toSorted((a, b) =>
      a.metadata.name < b.metadata.name ? -1 : 1,
    );
    const podRules = rules.filter(isMeant).map(({ spec: { pods = [{}], drain } }) => {
      return {
        pods,
        action: ownMember(ACTIONS, drain.behavior) ?? ('wait' as const),
        turn: drain.order ?? 0,
      };
    });
    const { length } = JSON.stringify(podRules);
    const place = `namespace ${namespace}, whose MachineDrainRules have ${length} characters, of ${MOST_CHARACTERS} at most,`;
    if (length > MOST_CHARACTERS) return { drainSeconds, paused: paused || place };
    return { drainSeconds, ...(paused && { paused }), ...(podRules.length > 0 && { podRules }) };
  };
}

/**
 * The actions of a drain, by the behavior in a MachineDrainRule. A later Cluster API may define other behaviors. If the
 * drain does not know the behavior, it waits for the pod.
 */
const ACTIONS: Readonly<Record<string, 'evict' | 'leave'>> = { Drain: 'evict', Skip: 'leave' };
