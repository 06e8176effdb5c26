/** The first pass over a command: finds out what prevents it, which targets it has, and which of these are missing. */
import type { TargetSpec, TargetStatus } from '../../../../src/api/autopilot/plan.ts';
import type { KubeObject, Resource } from '../../../../src/kube/resources.ts';
import {
  objectFields,
  parseFieldSelector,
  parseLabelSelector,
  SelectorError,
} from '../../../../src/kube/selectors.ts';
import { controlNodes } from '../../../../src/signal/names.ts';
import { rfc3339 } from '../../../../src/util/clock.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Cache } from '../runtime/manager.ts';
import { platformOf, recordTargets } from './command-view.ts';
import type { LeaderParts, Pass } from './parts.ts';

export const newPlan: Pass = async (parts, view) => {
  const problem = await removedApis(parts, view);
  if (problem !== undefined) {
    view.status.state = 'Warning';
    view.status.description = problem;
    return 'Warning';
  }
  view.status.state = 'SchedulableWait';
  const now = rfc3339(parts.clock.now());
  for (const { role, resource, target, entries } of view.groups) {
    for (const name of discover(parts.cache, resource, target)) {
      if (
        view.kind === 'k0supdate' &&
        role === 'workers' &&
        isController(parts.cache, name, view.platforms)
      )
        continue;
      entries.push({ name, state: 'SignalPending', lastUpdatedTimestamp: now });
    }
    for (const entry of entries)
      entry.state = stateOf(parts.cache.get(resource, entry.name), view.platforms);
  }
  recordTargets(view);
  const entries = view.groups.flatMap((group) => group.entries);
  return entries.every(({ state }) => state === 'SignalPending')
    ? 'SchedulableWait'
    : 'IncompleteTargets';
};

/**
 * Returns what prevents the update because of removed APIs. If the check itself fails, its error prevents the update as
 * well.
 */
async function removedApis(
  parts: LeaderParts,
  { kind, forceupdate, version }: Parameters<Pass>[1],
) {
  if (kind === 'k0supdate' && forceupdate) return undefined;
  return await parts.findRemovedApis(version).catch((error: unknown) => messageOf(error));
}

/**
 * Finds the names of the targets. A list takes precedence over a selector. If the label part or the field part of a
 * selector cannot be parsed, that part is ignored and restricts nothing.
 */
function discover(cache: Cache, resource: Resource, target: TargetSpec | undefined): string[] {
  const { static: listed, selector } = target?.discovery ?? {};
  if (listed !== undefined) return listed.nodes ?? [];
  if (selector === undefined) return [];
  const byLabels = matcher(() => parseLabelSelector(selector.labels ?? ''));
  const fields = selector.fields ?? '';
  // The cache of the original has an index only for this form, and rejects every other field selector. Then no targets
  // are found.
  const isIndexed = fields === '' || /^metadata\.name==?[^,!=]*$/.test(fields);
  if (!isIndexed && looksLikeSelector(fields)) return [];
  const byFields = matcher(() => parseFieldSelector(fields, objectFields));
  return cache
    .list(resource)
    .filter((object) => byLabels(object) && byFields(object))
    .map(({ metadata }) => metadata.name);
}

function looksLikeSelector(fields: string): boolean {
  return fields.split(',').every((part) => /^[\w.]+(?:==|=|!=)[^=!]*$/.test(part.trim()));
}

function matcher(parse: () => (object: KubeObject) => boolean): (object: KubeObject) => boolean {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SelectorError) return () => true;
    throw error;
  }
}

type Platforms = Readonly<Record<string, unknown>>;

/** Reports whether a worker is also a controller. Such a worker is updated as a controller. */
function isController(cache: Cache, name: string, platforms: Platforms): boolean {
  return stateOf(cache.get(controlNodes, name), platforms) === 'SignalPending';
}

function stateOf(object: KubeObject | undefined, platforms: Platforms): TargetStatus['state'] {
  if (object === undefined) return 'SignalMissingNode';
  const platform = platformOf(object);
  return platform !== undefined && platforms[platform] !== undefined
    ? 'SignalPending'
    : 'SignalMissingPlatform';
}
