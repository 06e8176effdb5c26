/**
 * Maintains Machines while they are updated. It keeps the rules of their update current, and prevents
 * MachineHealthChecks from replacing them.
 */
import { type Machine, machines, NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import { isFinal } from '../../../engine/model/rollout.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { keyOf, type Node, nodes, splitKey } from '../../../kube/resources.ts';
import { ifFound, ifUnchanged } from '../../../kube/status-error.ts';
import type { Informer } from '../../../kube/watch/informer.ts';
import {
  type Controller,
  fromMapping,
  type ReconcileContext,
} from '../../../runtime/run-controller.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { rolloutUidOf } from './machine-groups.ts';
import {
  type MachineUpdate,
  recordOf,
  type UpdateRecord,
  updateOn,
  withRequest,
} from './machine-update.ts';
import { disagreementOf, type UpdateParts } from './update-machine.ts';

/** `management` is for the cluster with the Machines, `writer` for the cluster with the Nodes. */
export interface CareParts extends Pick<UpdateParts, 'management' | 'rulesOf'> {
  readonly writer: KubeClient;
  readonly seen: Pick<Informer<Node>, 'get' | 'list'>;
}

/**
 * MachineHealthChecks skip a Machine with this annotation, whatever its value. If the value is not `ours`, a user has
 * set the annotation, and Refit does not change it.
 */
const SKIP = { annotation: 'cluster.x-k8s.io/skip-remediation', ours: 'upgrade.refit.dev' };
/**
 * Refit sets this label together with the annotation, because the API server can select objects by labels but not by
 * annotations.
 */
export const SKIP_LABEL = 'upgrade.refit.dev/skips-remediation';

/**
 * The milliseconds between two reads of the Machines, which Refit does not watch. At this rate, Refit sends about as many
 * requests as Cluster API itself.
 */
const LOOK_MS = 5_000;

export function machineCare(parts: CareParts & { readonly seen: Informer<Node> }): Controller {
  const { management, seen } = parts;
  // A Node that is new in the cache starts a reconcile, too. When this process becomes the leader,
  // all Nodes are new, and an earlier leader may have left labels on Machines.
  const isConcerned = (node: Node, before?: Node): boolean =>
    !before || [node, before].some((each) => activeUpdate(each) !== undefined);
  return {
    name: 'machine-care',
    sources: [fromMapping(seen, () => ['all'], isConcerned)],
    reconcile: async (_all, context) => {
      const asked = seen.list().flatMap((node) => activeUpdate(node)?.machine ?? []);
      const labelled = await management.listAll(machines, {
        labelSelector: SKIP_LABEL,
        abort: context.abort,
      });
      const left = labelled.items.map(keyOf);
      const all = [...new Set([...asked, ...left])].map(
        async (key) => await care(parts, key, context),
      );
      const failed = (await Promise.allSettled(all)).filter((each) => each.status === 'rejected');
      // A failure of one Machine does not delay the others.
      for (const { reason } of failed)
        context.log.warn('cannot look after a Machine; trying again', { reason });
      // A late write of an earlier leader may set the label again, so the Machines are read again from time to time.
      return { requeueAfterMs: asked.length + failed.length > 0 ? LOOK_MS : 60 * LOOK_MS };
    },
    concurrency: 1,
    timeoutMs: 60_000,
  };
}

function activeUpdate(node: Node): MachineUpdate | undefined {
  const update = updateOn(node);
  const record = update && recordOf(node, update);
  const isOpen = update?.owner === undefined ? !isFinal(record ?? NEW) : isWaitingOrAtWork(record);
  return isOpen ? update : undefined;
}

const NEW = { phase: 'new' } as const;

/** Returns true for a Machine of a plan with several Machines, of which any may be over. */
function isWaitingOrAtWork(record: UpdateRecord | undefined): boolean {
  return record === undefined || record.state === 'pending' || record.state === 'intended';
}

/**
 * Returns true if the Machine belongs to this workload cluster. This is the case if some Node has the annotations of
 * its Cluster, because Machines of other clusters may be in the same namespace. The Machine's own Node is not needed,
 * because it may not exist any more.
 */
function isOfCluster({ list }: CareParts['seen'], { metadata, spec }: Machine): boolean {
  const { cluster, namespace } = NODE_ANNOTATIONS;
  const isThere = ({ metadata: { annotations: at = {} } }: Node): boolean =>
    at[cluster] === spec?.clusterName && at[namespace] === metadata.namespace;
  return list().some(isThere);
}

async function care(
  { management, writer, seen, rulesOf }: CareParts,
  key: string,
  { abort }: ReconcileContext,
) {
  const { name, namespace } = splitKey(key);
  const machine = await ifFound(management.get(machines, name, { namespace, abort }));
  if (machine && !isOfCluster(seen, machine)) return;
  const isAsking = (each: Node): boolean => activeUpdate(each)?.machine === key;
  const node = machine ? seen.get(machine.status?.nodeRef?.name ?? '') : seen.list().find(isAsking);
  const update = node && activeUpdate(node);
  const isIts =
    node && update?.machine === key && (!machine || disagreementOf(machine, node) === undefined);
  if (isIts) {
    const gone = { drainSeconds: 0, paused: `Machine ${key}, which is gone,` };
    const rules = machine ? await rulesOf(machine, abort) : gone;
    const asked = withRequest(node, { ...update, rules });
    if (!sameJson(update.rules, rules)) await ifUnchanged(writer.replace(nodes, asked, { abort }));
  }
  if (machine)
    await markSkipped(management, machine, isIts === true && isTouched(node, update), abort);
}

/**
 * The statuses of a signal during which the update may break the node. They cover the time from the end of the drain
 * until the end of the update is recorded. If the node breaks earlier, the update is not the cause.
 */
const TOUCHED = ['ApplyingUpdate', 'Restart', 'RollingBack', 'UnCordoning', 'Completed'];

function isTouched(node: Node, update: MachineUpdate): boolean {
  const { annotations = {} } = node.metadata;
  const isOurs =
    annotations[ROLLOUT_ANNOTATION] === `${rolloutUidOf(update)}/${recordOf(node, update)?.since}`;
  return isOurs && TOUCHED.includes(decodeSignal(annotations)?.status?.status ?? '');
}

/** Sets or removes the annotation and the label that make MachineHealthChecks skip the Machine. Writes only if something changes. */
async function markSkipped(
  management: KubeClient,
  { metadata }: Machine,
  shouldSkip: boolean,
  abort: AbortSignal,
) {
  const { name, namespace, resourceVersion, annotations: before, labels = {} } = metadata;
  const found = ownMember(before, SKIP.annotation);
  const isOurs = found === SKIP.ours;
  const isMarked = isOurs || labels[SKIP_LABEL] !== undefined;
  if (shouldSkip ? found !== undefined : !isMarked) return;
  const value = shouldSkip ? SKIP.ours : null;
  const annotations = shouldSkip || isOurs ? { [SKIP.annotation]: value } : {};
  const marks = { annotations, labels: { [SKIP_LABEL]: shouldSkip ? '' : null } };
  const patch = { metadata: { resourceVersion, ...marks } };
  // A conflict is treated as an error, so that the write is retried.
  await ifFound(management.patch(machines, name, patch, { type: 'merge', namespace, abort }));
}
