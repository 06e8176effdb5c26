/** Owns how a command's target specification becomes names: listed one by one, or selected, always in a fixed order. */
import type { TargetSpec } from '../../api/autopilot/target.ts';
import type { World } from '../../engine/dialect.ts';
import type { Role } from '../../engine/model/recorded.ts';
import { platformOf } from '../../engine/observe/gather.ts';
import { nodes, type Resource } from '../../kube/resources.ts';
import { type Fields, nodeFields, objectFields, parseFieldSelector, parseLabelSelector } from '../../kube/selectors.ts';
import { controlNodes } from '../../signal/names.ts';

/** The objects that stand for targets and carry their signals. */
export const OBJECTS: Readonly<Record<Role, Resource>> = { controller: controlNodes, worker: nodes };

/** What the objects of each role can be selected by. */
export const FIELDS: Readonly<Record<Role, Fields>> = { controller: objectFields, worker: nodeFields };

/** A static list wins over a selector; with neither there are no targets. Selectors must be known to parse. */
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

/** A worker that is a controller too is updated as a controller only, so it is left out here. */
export function withoutControllers(names: readonly string[], platforms: readonly string[], world: World): string[] {
  return names.filter((name) => {
    const controller = world.get(OBJECTS.controller, name);
    return !controller || !platforms.includes(platformOf(controller) ?? '');
  });
}
