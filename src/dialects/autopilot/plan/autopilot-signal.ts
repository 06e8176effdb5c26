/**
 * Finds the targets of a command, and the objects that carry their signals: ControlNodes, or Nodes for workers and
 * bundles.
 */
import type { TargetSpec } from '../../../api/autopilot/plan.ts';
import type { DrainDelegation } from '../../../engine/contract/features.ts';
import type { Signal } from '../../../engine/contract/signal.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Role, Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import { platformOf } from '../../../engine/snapshot/gather.ts';
import { leases, type Node, nodes, type Resource } from '../../../kube/resources.ts';
import {
  type Fields,
  nodeFields,
  objectFields,
  parseFieldSelector,
  parseLabelSelector,
} from '../../../kube/selectors.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes, nodeNameOf } from '../../../signal/names.ts';
import {
  annotationSignal,
  foreignTargetsAmong,
  signalFor,
  unnamedCordonOf,
} from '../../shared/annotation-signal.ts';

/** The kinds of the objects that carry signals, by role of the target. */
export const OBJECTS: Readonly<Record<Role, Resource>> = {
  controller: controlNodes,
  worker: nodes,
};

/** The fields that field selectors may use. */
export const FIELDS: Readonly<Record<Role, Fields>> = {
  controller: objectFields,
  worker: nodeFields,
};

/**
 * Returns the names of the targets. A static list replaces a selector. If the spec has neither,
 * there are no targets. Throws SelectorError.
 */
export function discover(spec: TargetSpec | undefined, role: Role, world: World): string[] {
  const { static: listed, selector } = spec?.discovery ?? {};
  if (listed) return [...(listed.nodes ?? [])];
  if (!selector) return [];
  const byLabels = parseLabelSelector(selector.labels ?? '');
  const byFields = parseFieldSelector(selector.fields ?? '', FIELDS[role]);
  return world
    .list(OBJECTS[role])
    .filter((object) => byLabels(object) && byFields(object))
    .map(({ metadata }) => metadata.name)
    .toSorted();
}

/**
 * Returns the names of the nodes that are not controllers. A node that is a controller and a worker is updated as a
 * controller.
 */
export function withoutControllers(
  names: readonly string[],
  platforms: readonly string[],
  world: World,
): string[] {
  const controllers = world
    .list(controlNodes)
    .filter((node) => platforms.includes(platformOf(node) ?? ''));
  // The name of a controller's Node may differ from the name of its ControlNode.
  const known = new Set(controllers.flatMap((node) => [node.metadata.name, nodeNameOf(node)]));
  return names.filter((name) => !known.has(name));
}

export const signal: Signal = annotationSignal({ resourceOf: ({ role }) => OBJECTS[role] });

/**
 * Returns the version in the signal of the target; undefined if the target has no signal of this stage of the rollout.
 */
export function askedOf(
  world: World,
  rollout: Rollout,
  stage: Stage,
  { name }: Target,
): string | undefined {
  return signalFor(world.get(OBJECTS[stage.role], name), rollout, stage)?.command.version;
}

export const foreignWork = foreignTargetsAmong(OBJECTS);

export const drainDelegation: DrainDelegation = {
  nodeOf,

  /**
   * Resolves with true if the leader must drain the node. A label on the Lease of the node says so. Nodes with k0s
   * before version 1.35 do not have the label, and cordon and drain themselves.
   */
  async isDelegated(client, stage, target, world, abort) {
    const { name } = nodeOf(stage, target, world)?.metadata ?? target;
    const lease = await ifFound(client.get(leases, name, { namespace: 'kube-node-lease', abort }));
    return lease?.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined;
  },

  unnamedCordon: (world, rollout, { role }, { name }) =>
    unnamedCordonOf(world.get(OBJECTS[role], name), rollout, role),
};

/**
 * Returns the Node to drain; undefined for a controller without a kubelet, and for image bundles,
 * which need no drain.
 */
function nodeOf({ role, procedure }: Stage, { name }: Target, world: World): Node | undefined {
  if (procedure === 'airgapupdate') return undefined;
  if (role === 'worker') return world.get(nodes, name);
  const own = nodeNameOf(world.get(controlNodes, name));
  return own === undefined ? undefined : world.get(nodes, own);
}
