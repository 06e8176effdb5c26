/** While updates run, keeps their rules as Cluster API's objects have them, and MachineHealthChecks away from their Machines. */
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
} from '../../../runtime/controller.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type MachineUpdate, recordOf, updateOn, withRequest } from './rollout.ts';
import { disagreementOf, type UpdateParts } from './update-machine.ts';

/** `management`: of the cluster with the Machines. `writer`: of that with the Nodes. */
export interface CareParts extends Pick<UpdateParts, 'management' | 'rulesOf'> {
  readonly writer: KubeClient;
  readonly seen: Pick<Informer<Node>, 'get' | 'list'>;
}

/** MachineHealthChecks leave out a Machine with it, whatever its value. Another value than ours is a person's, and stays. */
const SKIP = { annotation: 'cluster.x-k8s.io/skip-remediation', ours: 'upgrade.refit.dev' };
/** Beside it, since only labels can be selected by. */
export const HELD_LABEL = 'upgrade.refit.dev/skips-remediation';

/** No watch shows Machines: these are about as many requests as Cluster API makes itself. */
const LOOK_MS = 5_000;

export function machineCare(parts: CareParts & { readonly seen: Informer<Node> }): Controller {
  const { management, seen } = parts;
  // Also what comes, as at the start of a term: an earlier leader may have left something.
  const isConcerned = (node: Node, before?: Node): boolean =>
    !before || [node, before].some((each) => activeUpdate(each) !== undefined);
  return {
    name: 'machine-care',
    sources: [fromMapping(seen, () => ['all'], isConcerned)],
    reconcile: async (_all, context) => {
      const asked = seen.list().flatMap((node) => activeUpdate(node)?.machine ?? []);
      const held = await management.listAll(machines, {
        labelSelector: HELD_LABEL,
        abort: context.abort,
      });
      const left = held.items.map(keyOf);
      const all = [...new Set([...asked, ...left])].map(
        async (key) => await care(parts, key, context),
      );
      const failed = (await Promise.allSettled(all)).filter((each) => each.status === 'rejected');
      // The others do not wait until one comes right.
      for (const { reason } of failed)
        context.log.warn('cannot look after a Machine; trying again', { reason });
      // A late write of an earlier leader may leave a hold.
      return { requeueAfterMs: asked.length + failed.length > 0 ? LOOK_MS : 60 * LOOK_MS };
    },
    concurrency: 1,
    timeoutMs: 60_000,
  };
}

function activeUpdate(node: Node): MachineUpdate | undefined {
  const update = updateOn(node);
  const record = update && recordOf(node, update);
  return record && isFinal(record) ? undefined : update;
}

/** Others are in the same place, and the Node of one may be gone. */
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
  if (machine) await holdOff(management, machine, isIts === true && isTouched(node, update), abort);
}

/** From the end of the drain to the recorded end: before, a node that breaks is none of our doing. */
const TOUCHED = ['ApplyingUpdate', 'Restart', 'RollingBack', 'UnCordoning', 'Completed'];

function isTouched(node: Node, update: MachineUpdate): boolean {
  const { annotations = {} } = node.metadata;
  const isOurs =
    annotations[ROLLOUT_ANNOTATION] === `${update.uid}/${recordOf(node, update)?.since}`;
  return isOurs && TOUCHED.includes(decodeSignal(annotations)?.status?.status ?? '');
}

async function holdOff(
  management: KubeClient,
  { metadata }: Machine,
  isHeld: boolean,
  abort: AbortSignal,
) {
  const { name, namespace, resourceVersion, annotations: before, labels = {} } = metadata;
  const found = ownMember(before, SKIP.annotation);
  if (isHeld ? found !== undefined : found !== SKIP.ours && labels[HELD_LABEL] === undefined)
    return;
  const [value, label] = isHeld ? [SKIP.ours, ''] : [null, null];
  const annotations = isHeld || found === SKIP.ours ? { [SKIP.annotation]: value } : {};
  const patch = { metadata: { resourceVersion, annotations, labels: { [HELD_LABEL]: label } } };
  // A conflict is an error, and tried again.
  await ifFound(management.patch(machines, name, patch, { type: 'merge', namespace, abort }));
}
