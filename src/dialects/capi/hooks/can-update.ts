/**
 * Answers CanUpdateMachine and CanUpdateMachineSet for the updater of Refit itself. The answer is a patch with the
 * change of the version, because Refit can make no other change.
 */
import * as hooks from '../../../api/capi/hooks.ts';
import { isRecord, type Json, sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { parseVersion } from '../../../util/version.ts';

interface Part {
  readonly name: 'machine' | 'infraMachine' | 'bootstrap';
  readonly object: hooks.PatchedObject;
}

/** The objects that the hooks of one kind compare. Only the fields below the path `root` are compared and patched. */
export interface Shape {
  readonly parts: readonly Part[];
  readonly root: readonly string[];
}

export const MACHINE_SHAPE: Shape = {
  root: ['spec'],
  parts: [
    { name: 'machine', object: 'machine' },
    { name: 'infraMachine', object: 'infrastructureMachine' },
    { name: 'bootstrap', object: 'bootstrapConfig' },
  ],
};

export const SET_SHAPE: Shape = {
  root: ['spec', 'template', 'spec'],
  parts: [
    { name: 'machine', object: 'machineSet' },
    { name: 'infraMachine', object: 'infrastructureMachineTemplate' },
    { name: 'bootstrap', object: 'bootstrapConfigTemplate' },
  ],
};

/** The fields of a Machine's spec that are not compared. Cluster API ignores them, too, because they are propagated or immutable. */
const IGNORED = new Set([
  'clusterName',
  'bootstrap',
  'infrastructureRef',
  'providerID',
  'minReadySeconds',
  'readinessGates',
  'deletion',
  'taints',
]);

/**
 * The change of one leaf. `from` is undefined if the old object does not have the leaf. `to` is undefined if the new
 * object does not have the leaf. Lists are leaves.
 */
export interface Change {
  readonly path: readonly string[];
  readonly from?: Value;
  readonly to?: Value;
}

type Value = Json | undefined;

/** A change in one of the objects. `path` is relative to the root of the shape. */
export interface PartChange extends Change {
  readonly part: Part;
}

export function changesBetween(
  shape: Shape,
  current: hooks.Triple,
  desired: hooks.Triple,
): PartChange[] {
  return shape.parts.flatMap((part) => {
    const from = compared(shape, part, current[part.object]);
    const to = compared(shape, part, desired[part.object]);
    return differences(from, to).map((change) => ({ ...change, part }));
  });
}

/** Returns a name such as `machine.spec.version`. It is the same for Machines and for the templates of MachineSets. */
export function nameOf({ part, path }: PartChange): string {
  return [part.name, 'spec', ...path].join('.');
}

export function compared(
  { root }: Shape,
  part: Part,
  object: hooks.HookObject | null | undefined,
): Value {
  const value = valueAt(object, root);
  // Cluster API decodes Machines into Go types, in which an empty field is the same as an absent field.
  if (part.name !== 'machine' || !isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([key, field]) => !IGNORED.has(key) && !isEmpty(field)),
  );
}

export function isEmpty(value: Value): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === '';
}

/**
 * Returns the changes from `from` to `to`, sorted by path. An added object is one change per leaf; a removed object is
 * one change.
 */
export function differences(from: Value, to: Value, path: readonly string[] = []): Change[] {
  const isNewAndEmpty = from === undefined && isRecord(to) && Object.keys(to).length === 0;
  const hasMembers = from === undefined || isRecord(from);
  if (!isRecord(to) || !hasMembers || isNewAndEmpty)
    return sameJson(from, to) ? [] : [{ path, from, to }];
  const before = from ?? {};
  const keys = [...new Set([...Object.keys(before), ...Object.keys(to)])].toSorted();
  return keys.flatMap((key) => differences(own(before, key), own(to, key), [...path, key]));
}

export function valueAt(value: unknown, path: readonly string[]): Value {
  let at = value;
  for (const key of path) at = isRecord(at) ? own(at, key) : undefined;
  return at as Value;
}

/** Returns the own member of the record; undefined if there is none. Inherited names such as `constructor` do not count. */
function own(record: Record<string, unknown>, key: string): Value {
  return ownMember(record, key) as Value | undefined;
}

export interface CanRequest {
  readonly settings?: hooks.Settings | null | undefined;
  readonly current: hooks.Triple;
  readonly desired: hooks.Triple;
}

export function answerCan(kind: string, shape: Shape, { settings, current, desired }: CanRequest) {
  if (isDisabled(settings))
    return accepted(kind, 'in-place updates are disabled by the setting disableInPlaceUpdates');
  const changes = changesBetween(shape, current, desired);
  const claimed = changes.find(isOurs);
  const rest = changes.filter((change) => change !== claimed).map(nameOf);
  const message = `covers ${claimed ? nameOf(claimed) : 'nothing'}; not covered: ${rest.join(', ') || 'nothing'}`;
  if (!claimed || (rest.length > 0 && settings?.['partial'] === 'deny'))
    return accepted(kind, message);
  const { part, path, to } = claimed;
  const document = nested([...shape.root, ...path], to);
  const patch = Buffer.from(JSON.stringify(document)).toString('base64');
  return accepted(kind, message, {
    [`${part.object}Patch` as const]: { patchType: 'JSONMergePatch', patch },
  });
}

/**
 * Returns true for a change of the Kubernetes version, the only change that agents can carry out.
 */
function isOurs(change: PartChange): boolean {
  if (nameOf(change) !== 'machine.spec.version') return false;
  return typeof change.to === 'string' && parseVersion(change.to) !== undefined;
}

/** Returns an object that has only the value at the path. */
function nested(path: readonly string[], value: unknown): unknown {
  let document = value;
  for (const key of path.toReversed()) document = { [key]: document };
  return document;
}

export function accepted(
  kind: string,
  message: string,
  claim: hooks.Claim = {},
): hooks.CanUpdateResponse {
  return {
    apiVersion: hooks.HOOK_GROUP,
    kind: `${kind}Response`,
    status: 'Success',
    message,
    ...claim,
  };
}

/** Returns true if the setting of Cluster API's reference extension turns in-place updates off. */
export function isDisabled(settings: hooks.Settings | null | undefined): boolean {
  return settings?.['disableInPlaceUpdates'] === 'true';
}
