/** Owns the Cluster API front door: a Node on which an update of its Machine was asked for as a rollout of the engine. */
import type { Dialect, World } from '../../engine/dialect.ts';
import type { ForeignWork } from '../../engine/model/observed.ts';
import type { Rollout } from '../../engine/model/recorded.ts';
import { isRelevant } from '../../engine/observe/predicates.ts';
import { nodes } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import { annotationSignal, type Carriers } from '../annotation-signal.ts';
import { endpointsOf } from '../node-endpoints.ts';
import { recordOf, updateOn } from './machine-update.ts';
import { project, resolve } from './rollout.ts';

/** No lease of k0s's tells who cordons here: whoever writes the signal does. */
const CARRIERS: Carriers = {
  resourceOf: () => nodes,
  all: [[nodes, 'worker']],
  agent: { cordoning: 'leader' },
};

export const capi: Dialect<Node> = {
  name: 'capi',
  plans: nodes,
  scope: { isPlan: (node) => updateOn(node) !== undefined },
  watched: [{ resource: nodes, isRelevant }],
  resolve: (node, _world, now) => resolve(node, now),
  project,
  objectOf: (_stage, { name }, world) => world.get(nodes, name),
  endpoints: endpointsOf,
  foreignWork: { list: controllersAtWork },
  drainDelegation: { nodeOf: (_stage, { name }, world) => world.get(nodes, name), always: true },
  fleet: { nodes: (world) => world.list(nodes) },
  signal: annotationSignal(CARRIERS),
};

/**
 * Each Machine is a rollout of its own, so the engine's one slot for controllers does not span them: two at once are kept
 * apart here. Nobody else is counted, as the caller says how many workers move.
 */
function controllersAtWork(world: World, rollout: Rollout): ForeignWork[] {
  if (rollout.stages.some(({ role }) => role === 'worker')) return [];
  return world.list(nodes).flatMap((node) => {
    const update = updateOn(node);
    const record = update && recordOf(node, update);
    const isAtWork = update?.role === 'controller' && record?.state === 'intended';
    return isAtWork && update.uid !== rollout.source.uid
      ? [{ name: node.metadata.name, role: 'controller', since: record.since }]
      : [];
  });
}
