/** Finds the names of a command's targets: a list, or the result of a selector in alphabetical order. */
import type { TargetSpec } from '../../api/autopilot/plan.ts';
import type { World } from '../../engine/dialect.ts';
import type { Role } from '../../engine/model/recorded.ts';
import { platformOf } from '../../engine/observe/gather.ts';
import { nodes, type Resource } from '../../kube/resources.ts';
import { type Fields, nodeFields, objectFields, parseFieldSelector, parseLabelSelector } from '../../kube/selectors.ts';
import { controlNodes } from '../../signal/names.ts';

/** The objects that carry signals, by role of their targets. */
export const OBJECTS: Readonly<Record<Role, Resource>> = { controller: controlNodes, worker: nodes };

/** The fields that field selectors may use. */
export const FIELDS: Readonly<Record<Role, Fields>> = { controller: objectFields, worker: nodeFields };

/** A static list wins over a selector; without both there are no targets. Throws SelectorError. */
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

/** Leaves out workers that are controllers too: they are updated as controllers. */
export function withoutControllers(names: readonly string[], platforms: readonly string[], world: World): string[] {
  return names.filter((name) => {
    const controller = world.get(OBJECTS.controller, name);
    return !controller || !platforms.includes(platformOf(controller) ?? '');
  });
}
