/** Reads from Cluster API's objects the rules of an update: who paused it, and how its drain treats each pod. */
import { clusters, type DrainRule, drainRules, type Machine } from '../../../api/capi/machine.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { matchesLabels } from '../../../kube/selectors.ts';
import { isForbidden, isNotFound } from '../../../kube/status-error.ts';
import { unlessError } from '../../../util/errors.ts';
import type { Logger } from '../../../util/log.ts';
import { onceForEach } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import type { MachineUpdate } from './rollout.ts';

export type RulesOf = (
  machine: Machine,
  abort: AbortSignal,
) => Promise<NonNullable<MachineUpdate['rules']>>;

/**
 * The limit for the text of the rules. A Node whose annotations are too large could not be written, not even with a
 * pause.
 */
const MOST_CHARACTERS = 64 * 1024;

const unlessUntold = unlessError((error) => isForbidden(error) || isNotFound(error));

/**
 * Returns a reader of the rules. Objects that it may not read, or that do not exist, do not count; it logs that once.
 * The reader rejects if the API server does not answer.
 */
export function machineRules(management: KubeClient, log: Pick<Logger, 'info'>): RulesOf {
  let isSaid = false;
  /** The rules are listed once for all Machines of one reconcile. */
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
 * If an action is missing here, such as one of a later Cluster API, the drain waits for the pod.
 */
const ACTIONS: Readonly<Record<string, 'evict' | 'leave'>> = { Drain: 'evict', Skip: 'leave' };
