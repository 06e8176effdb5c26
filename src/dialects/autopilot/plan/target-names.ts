/**
 * Finds out which nodes people meant, if a Plan lists names that do not exist, or leaves nodes out without saying so.
 */
import type { K0sUpdate, Plan } from '../../../api/autopilot/plan.ts';
import type { World } from '../../../engine/contract/world.ts';
import { isFinal, type Role } from '../../../engine/model/rollout.ts';
import { type KubeObject, nodes } from '../../../kube/resources.ts';
import { parseLabelSelector } from '../../../kube/selectors.ts';
import { controlNodes, nodeNameOf } from '../../../signal/names.ts';
import { nearestHost } from '../../../util/nearest-host.ts';
import { listed } from '../../../util/phrases.ts';
import { discover, OBJECTS } from './autopilot-signal.ts';
import { problemsOf } from './problems.ts';
import { phaseOfPlan } from './states.ts';

/**
 * Returns a clause about the object that people probably meant by a name that no object of this role has; undefined if
 * no name resembles it.
 */
export function meantBy(name: string, role: Role, world: World): string | undefined {
  if (role === 'worker' && namesOf('controller', world).includes(name))
    return 'a controller has this name, so list it under targets.controllers';
  const onNode = world.list(controlNodes).find((each) => nodeNameOf(each) === name);
  if (role === 'controller' && onNode !== undefined)
    return `its Node has this name, but its ControlNode is called ${onNode.metadata.name}, so list that name`;
  if (role === 'controller' && namesOf('worker', world).includes(name))
    return 'a Node that is no controller has this name, so list it under targets.workers';
  const meant = nearestHost(name, namesOf(role, world));
  return meant === undefined ? undefined : `perhaps ${meant} is meant`;
}

/** Returns a warning for each kind of nodes that the lists of the Plan leave out, although a person may not expect it. */
export function leftOut(plan: Plan, world: World): string[] {
  const isOver = isFinal({ phase: phaseOfPlan(plan.status?.state) });
  if (isOver || problemsOf(plan).length > 0) return [];
  return plan.spec.commands.flatMap(({ k0supdate }, index) =>
    k0supdate === undefined ? [] : leftOutBy(k0supdate, `spec.commands[${index}].k0supdate`, world),
  );
}

function leftOutBy({ targets }: K0sUpdate, at: string, world: World): string[] {
  const { controllers, workers } = targets;
  const updated = new Set(discover(controllers, 'controller', world));
  const wanted = new Set(workers?.discovery.static?.nodes);
  const forgotten = world
    .list(controlNodes)
    .filter((node) => !updated.has(node.metadata.name))
    .flatMap((node) => [node.metadata.name, nodeNameOf(node) ?? ''])
    .filter((name) => wanted.has(name));
  const { static: names, selector } = workers?.discovery ?? {};
  const isEmpty = names !== undefined && (names.nodes ?? []).length === 0;
  const free = isEmpty ? workersIn(world) : [];
  const wrongKind =
    updated.size === 0 ? nodesWith(controllers?.discovery.selector?.labels, world) : [];
  return [
    ...(forgotten.length === 0
      ? []
      : [
          `${listed([...new Set(forgotten)])} in ${at}.targets.workers runs a controller, so the update of workers leaves it out: list it under targets.controllers`,
        ]),
    ...(free.length === 0
      ? []
      : [
          `${at}.targets.workers.discovery.static lists no node, so no worker is updated${selector ? ', and the selector does not count' : ''}: ${listed(free, 3)}`,
        ]),
    ...(wrongKind.length === 0
      ? []
      : [
          `the labels in ${at}.targets.controllers.discovery.selector are on Nodes such as ${wrongKind[0]}, but controllers are selected by the labels of their ControlNodes: leave the labels out to select all controllers`,
        ]),
  ];
}

/** Returns the names of the Nodes that are not controllers. */
function workersIn(world: World): string[] {
  const controllers = new Set(
    world.list(controlNodes).flatMap((node) => [node.metadata.name, nodeNameOf(node) ?? '']),
  );
  return namesOf('worker', world).filter((name) => !controllers.has(name));
}

/** Returns the names of the Nodes with these labels; an empty list if there are no labels. */
function nodesWith(labels: string | undefined, world: World): string[] {
  if (!labels) return [];
  const matches = parseLabelSelector(labels);
  return world
    .list(nodes)
    .filter((node: KubeObject) => matches(node))
    .map(({ metadata }) => metadata.name);
}

function namesOf(role: Role, world: World): string[] {
  return world
    .list(OBJECTS[role])
    .map(({ metadata }) => metadata.name)
    .toSorted();
}
