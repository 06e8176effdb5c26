/** The dialect of Cluster API. It maps Nodes with update requests to rollouts of the engine: one for each owner, or for each Machine. */
import { NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import type { Dialect } from '../../../engine/contract/dialect.ts';
import type { Instruction } from '../../../engine/contract/signal.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Signalling } from '../../../engine/model/decision.ts';
import type { Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import type { ForeignWork } from '../../../engine/model/snapshot.ts';
import { isRelevant } from '../../../engine/snapshot/predicates.ts';
import {
  type KubeObject,
  kubeletVersionOf,
  type Node,
  nodes,
  splitKey,
} from '../../../kube/resources.ts';
import { agentOf } from '../../../signal/agent-presence.ts';
import { isOlder } from '../../../versions/release-parts.ts';
import { annotationSignal, occupantOf, unnamedCordonOf } from '../../shared/annotation-signal.ts';
import { endpointsOf, isController } from '../../shared/node-endpoints.ts';
import { originOf } from '../../shared/signal-owner.ts';
import { orphanedPlans, signalAtWorkOn } from './capi-orphaned-work.ts';
import { groupOf, representing, rolloutUidOf, stateIn } from './machine-groups.ts';
import { recordOf, updateOn } from './machine-update.ts';
import { copies, proved, sealed } from './owner-controls.ts';
import { obstacleOf, withRules, withRulesOfMachines } from './policy-rules.ts';
import { subjectOfOwner } from './remembered-runs.ts';
import { payloadOf, project, resolve, sharding, withStart } from './rollout.ts';

const signal = annotationSignal({
  resourceOf: () => nodes,
  agent: { cordoning: 'leader' },
  isBegun: isOtherControllerDone,
});

export const capi: Dialect<Node> = {
  name: 'capi',
  rollBack: {
    byHand:
      'the owner of the Machine decides its version; set the version back in the KubeadmControlPlane, K0sControlPlane or MachineDeployment',
  },
  plans: nodes,
  planObjects: {
    isPlan: (node) => updateOn(node) !== undefined,
    representing,
    copies,
    sealed,
    proved,
    referenceOf,
  },
  watched: [{ resource: nodes, isRelevant }],
  reporting: {
    clusterOf: ({ metadata: { annotations } }) => annotations?.[NODE_ANNOTATIONS.cluster],
  },
  planRules: { apply: withRules, ofParts: withRulesOfMachines },
  sharding,
  // The agent of a target that missed its deadline may be gone. Then the update must end, so that Cluster API learns of it.
  ordersRetries: 'unless-late',
  resolve,
  project,
  objectOf: (_stage, { name }, world) => world.get(nodes, name),
  endpoints: endpointsOf,
  foreignWork: { list: controllersAtWork },
  nodeSharing: {
    occupantOf: (world, target, plan) =>
      obstacleOf(world, target.name, plan) ?? occupantOf(world, target, plan),
  },
  drainDelegation: {
    always: true,
    nodeOf: (_stage, { name }, world) => world.get(nodes, name),
    unnamedCordon: (world, rollout, { role }, { name }) =>
      unnamedCordonOf(world.get(nodes, name), rollout, role),
  },
  versions: { isBehind: (node, { version }) => isOlder(kubeletVersionOf(node), version) },
  agents: { of: agentOf },
  names: { subjectOf: machineOf },
  nodeRollouts: { subjectOf },
  orphanedWork: { plans: orphanedPlans },
  // The leader always cordons and drains.
  signal: { ...signal, send: sendOwn },
};

/**
 * Sends what the request on the Node of the target itself names. A kubelet can change the request on its own Node, and must
 * not choose what other Nodes install.
 */
function sendOwn(
  world: World,
  rollout: Rollout,
  asked: Signalling,
  plan: Node,
): Instruction | undefined {
  const node = world.get(nodes, asked.target.name);
  const update = node && updateOn(node);
  if (update?.owner === undefined) return signal.send(world, rollout, asked, plan);
  const { procedure: _procedure, ...stage } = asked.stage;
  const own = {
    ...stage,
    version: update.version,
    ...(update.procedure && { procedure: update.procedure }),
  };
  const sent = signal.send(
    world,
    rollout,
    { ...asked, stage: own, payload: payloadOf(update) },
    plan,
  );
  if (sent?.kind !== 'replace' || node?.metadata.name === plan.metadata.name) return sent;
  return { ...sent, object: withStart(sent.object, asked, rollout) };
}

/**
 * Returns true if another controller of the cluster was updated to the version of the stage. The stage itself does not
 * show this, because each Machine may be a rollout of its own. So the function reads the records on the Nodes of other
 * controllers. These records are kept until the next request.
 */
function isOtherControllerDone(world: World, { version }: Stage, { name }: Target): boolean {
  const clusterOf = (node: Node | undefined): string | undefined =>
    node?.metadata.annotations?.[NODE_ANNOTATIONS.cluster];
  const cluster = clusterOf(world.get(nodes, name));
  return world.list(nodes).some((node) => {
    if (node.metadata.name === name || !isController(node) || clusterOf(node) !== cluster)
      return false;
    const update = updateOn(node);
    if (update?.role !== 'controller' || update.version !== version) return false;
    return recordOf(node, update)?.state === 'done';
  });
}

/**
 * Returns the other controllers in progress as foreign work; nothing for a worker. Each Machine may be a rollout of
 * its own, so without this check, several controllers could be updated at once. Cluster API itself limits the number of
 * workers that are updated at once.
 */
function controllersAtWork(world: World, rollout: Rollout): ForeignWork[] {
  if (rollout.stages.some(({ role }) => role === 'worker')) return [];
  return world.list(nodes).flatMap((node) => {
    if (!isController(node)) return [];
    const update = updateOn(node);
    // A kubelet can write the request and the record on its own Node, but it cannot set the label that makes its Node a
    // controller.
    const record =
      update && stateIn(groupOf(world.list(nodes), node)?.chosen ?? [], { node, update });
    const isOther =
      update?.role === 'controller' &&
      rolloutUidOf(update) !== rollout.source.uid &&
      record?.state === 'intended';
    const signal = signalAtWorkOn(node);
    const isOwn = signal !== undefined && originOf(node, signal)?.uid === rollout.source.uid;
    const sent = isOwn ? undefined : signal?.created;
    const attempt = isOther ? record.since : sent;
    return attempt === undefined ? [] : [{ name: node.metadata.name, role: 'controller', attempt }];
  });
}

/** Returns the key of the Machine of the Node, `<namespace>/<name>`; undefined if neither a request nor Cluster API names it. */
function machineOf(node: KubeObject): string | undefined {
  const { annotations = {} } = node.metadata;
  const place = annotations[NODE_ANNOTATIONS.namespace];
  const name = annotations[NODE_ANNOTATIONS.machine];
  const known = place === undefined || name === undefined ? undefined : `${place}/${name}`;
  return updateOn(node)?.machine ?? known;
}

/** Returns the owner of the Machine, or else the Machine for which the Node is updated; undefined if there is no request. */
function subjectOf(
  node: Node,
): { namespace: string; name: string; kind: string | undefined } | undefined {
  const { machine = '', owner } = updateOn(node) ?? {};
  const { name, namespace } = splitKey(machine);
  if (namespace === undefined) return undefined;
  return owner ? subjectOfOwner(namespace, owner) : { namespace, name, kind: undefined };
}

/** A policy selects a plan with several Machines by the name of their owner, and a single Machine by the name of its Node. */
function referenceOf(node: Node): Pick<Node['metadata'], 'namespace' | 'name' | 'uid'> {
  const update = updateOn(node);
  const subject = update?.owner === undefined ? undefined : subjectOf(node);
  if (update === undefined || subject === undefined) return node.metadata;
  const { namespace, name } = subject;
  return { namespace, name, uid: rolloutUidOf(update) };
}
