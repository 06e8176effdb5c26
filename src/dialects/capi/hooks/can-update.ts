/**
 * Answers CanUpdateMachine and CanUpdateMachineSet for the updater of Refit itself. The answer is a patch with the
 * change of the version, and with what Cluster API changes by itself because of the version. Refit can make no other
 * change.
 */
import * as hooks from '../../../api/capi/hooks.ts';
import { isRecord, type Json, sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { parseVersion } from '../../../util/version.ts';
import { gatesOfClusterApi } from '../../../versions/cluster-api-gates.ts';
import { isDisabled, judgeSettings } from './settings.ts';

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

const VERSION_HINT =
  ' (give spec.version of the Machine the same version, and Refit covers both, if it was the same before)';

export function answerCan(kind: string, shape: Shape, { settings, current, desired }: CanRequest) {
  judgeSettings(settings);
  if (isDisabled(settings))
    return accepted(kind, 'in-place updates are disabled by the setting disableInPlaceUpdates');
  const changes = changesBetween(shape, current, desired);
  const bootstrap = shape.parts.find(({ name }) => name === 'bootstrap');
  const claimed = claimedIn(changes, {
    kind: (bootstrap && desired[bootstrap.object]?.kind) ?? '',
  });
  const rest = changes.filter((change) => !claimed.includes(change));
  const hint = rest.map(nameOf).includes('bootstrap.spec.version') ? VERSION_HINT : '';
  const message = `covers ${namesOf(claimed) || 'nothing'}; not covered: ${namesOf(rest) || 'nothing'}${hint}`;
  if (claimed.length === 0 || (rest.length > 0 && settings?.['partial'] === 'deny'))
    return accepted(kind, message);
  return accepted(kind, message, claimOf(shape, claimed));
}

function namesOf(changes: readonly PartChange[]): string {
  return changes.map(nameOf).join(', ');
}

/** Returns a patch for each object that the changes concern. */
function claimOf(shape: Shape, changes: readonly PartChange[]): hooks.Claim {
  const byObject = Map.groupBy(changes, ({ part }) => part.object);
  const patches = [...byObject].map(([object, own]) => {
    const document = own.reduce<unknown>(
      (known, { path, to }) => merged(known, nested([...shape.root, ...path], to ?? null)),
      {},
    );
    const patch = Buffer.from(JSON.stringify(document)).toString('base64');
    return [`${object}Patch`, { patchType: 'JSONMergePatch', patch }] as const;
  });
  return Object.fromEntries(patches);
}

/** Returns both documents in one. None of the changes in them lies inside another. */
function merged(known: unknown, more: unknown): unknown {
  if (!isRecord(known) || !isRecord(more)) return more;
  const keys = [...new Set([...Object.keys(known), ...Object.keys(more)])];
  return Object.fromEntries(
    keys.map((key) => [
      key,
      Object.hasOwn(more, key) ? merged(own(known, key), own(more, key)) : own(known, key),
    ]),
  );
}

/**
 * Returns the changes that Refit covers: the change of the Kubernetes version, which is the only change that agents
 * carry out, and what Cluster API changes by itself with that version. Nothing else is covered.
 */
function claimedIn(changes: readonly PartChange[], wanted: Wanted): readonly PartChange[] {
  const version = changes.find(isOurs);
  // Without a new version there is nothing that an agent could do, so the update belongs to the owner of the Machines.
  if (version === undefined) return [];
  const followed = changes.filter(
    (change) =>
      followsVersion(change, version) ||
      repeatsVersion(change, version, wanted) ||
      isDefault(change, wanted),
  );
  return [version, ...followed];
}

/** What the desired objects say. */
interface Wanted {
  /** The kind of the bootstrap config or of its template. */
  readonly kind: string;
}

/**
 * Returns true for the version in a bootstrap config of k0s, if it is the version of the Machine before and after the
 * change, and for a download URL in which only the version changes. The config may also begin or stop to repeat the
 * version of the Machine. The provider reads these fields only for new Machines.
 */
function repeatsVersion(
  { part, path, from, to }: PartChange,
  version: PartChange,
  { kind }: Wanted,
): boolean {
  const [field, ...deeper] = path;
  if (part.name !== 'bootstrap' || !kind.startsWith('K0s') || deeper.length > 0) return false;
  const isRepeated = (value: Value, whole: Value): boolean =>
    value === undefined || value === whole;
  if (field === 'version') return isRepeated(from, version.from) && isRepeated(to, version.to);
  return field === 'downloadURL' && isMovedUrl(from, to, version);
}

/** Returns true if both texts are URLs that differ only in the version, which may be encoded. */
function isMovedUrl(from: Value, to: Value, version: PartChange): boolean {
  const { from: before, to: after } = version;
  if (typeof from !== 'string' || typeof before !== 'string' || typeof after !== 'string')
    return false;
  const moved = from
    .replaceAll(before, () => after)
    .replaceAll(encodeURIComponent(before), () => encodeURIComponent(after));
  return moved !== from && moved === to;
}

/**
 * The defaults that Cluster API has written into configs of kubeadm. A config without the field means the same, but the
 * templates of MachineSets are compared as they are.
 */
const DEFAULTS: ReadonlyMap<string, string> = new Map([
  ['format', 'cloud-config'],
  ['initConfiguration.nodeRegistration.imagePullPolicy', 'IfNotPresent'],
  ['joinConfiguration.nodeRegistration.imagePullPolicy', 'IfNotPresent'],
]);

/** Returns true if the change only writes or removes a default. */
function isDefault({ part, path, from, to }: PartChange, { kind }: Wanted): boolean {
  const value = from ?? to;
  return (
    part.name === 'bootstrap' &&
    kind.startsWith('KubeadmConfig') &&
    (from === undefined || to === undefined) &&
    value !== undefined &&
    DEFAULTS.get(path.join('.')) === value
  );
}

/** Returns true if the value at the path has these gates and nothing else. */
function isOnly(value: Value, gates: Value, path: readonly string[]): boolean {
  return sameJson(nested(path, value), nested(GATES, gates));
}

/** Returns true for a change of the Kubernetes version. */
function isOurs(change: PartChange): boolean {
  if (nameOf(change) !== 'machine.spec.version') return false;
  return typeof change.to === 'string' && parseVersion(change.to) !== undefined;
}

const GATES = ['clusterConfiguration', 'featureGates'] as const;

/**
 * Returns true if the change only adds gates that Cluster API sets for the new version, or removes gates that it set for
 * the old version.
 */
function followsVersion({ part, path, from, to }: PartChange, version: PartChange): boolean {
  if (part.name !== 'bootstrap') return false;
  const before = gatesOf(version.from);
  const after = gatesOf(version.to);
  if (before === undefined || after === undefined) return false;
  const changed = (value: Value): Value =>
    value === undefined ? undefined : valueAt(nested(path, value), GATES);
  const removed = changed(from);
  const added = changed(to);
  // Nothing else than these gates may change together with them.
  const isWhole = (value: Value, gates: Value): boolean =>
    value === undefined || isOnly(value, gates, path);
  if (!isWhole(from, removed) || !isWhole(to, added)) return false;
  return isSetOnlyIn(removed, before, after) && isSetOnlyIn(added, after, before);
}

function gatesOf(version: Value): Readonly<Record<string, boolean>> | undefined {
  return typeof version === 'string' ? gatesOfClusterApi(version) : undefined;
}

/** Returns true if Cluster API sets each of the gates to its value for one version, and does not set it for the other. */
function isSetOnlyIn(
  gates: Value,
  set: Readonly<Record<string, boolean>>,
  other: Readonly<Record<string, boolean>>,
): boolean {
  if (gates === undefined) return true;
  if (!isRecord(gates)) return false;
  return Object.entries(gates).every(
    ([gate, value]) => own(set, gate) === value && own(other, gate) === undefined,
  );
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
