/**
 * Refit's own updater for files, SSH keys of users and arguments of the kubelet. It claims the changes that all agents
 * allow, and lets the agents make them.
 */
import { randomUUID } from 'node:crypto';
import type { UpdateMachineRequest } from '../../../../api/capi/hooks.ts';
import type { Machine } from '../../../../api/capi/machine.ts';
import { annotated, type Node, nodes } from '../../../../kube/resources.ts';
import { isConflict } from '../../../../kube/status-error.ts';
import { configurableOn } from '../../../../signal/agent-presence.ts';
import * as wire from '../../../../signal/node-configuration.ts';
import { unlessError } from '../../../../util/errors.ts';
import { isRecord, sameJson } from '../../../../util/json.ts';
import { ownMember } from '../../../../util/own-member.ts';
import { counted } from '../../../../util/phrases.ts';
import { printable } from '../../../../util/printable.ts';
import { scalarText } from '../../../../util/scalar-text.ts';
import { DONE, failure, findNode, type UpdateParts, underWay } from '../../plan/update-machine.ts';
import {
  accepted,
  type CanRequest,
  type Change,
  changesBetween,
  type Shape,
  valueAt,
} from '../can-update.ts';
import { patchesTo, withChange } from './composition.ts';

type Concerned = readonly { readonly node: Node }[];

/** Returns the patch for the changes that the agents can make. `own` contains the Nodes of the Machines. */
export function claimConfiguration(
  hook: string,
  shape: Shape,
  { current, desired }: CanRequest,
  own: Concerned,
) {
  const changes = changesBetween(shape, current, desired).filter(
    ({ part }) => part.name === 'bootstrap',
  );
  const wanted = desired[changes[0]?.part.object ?? ''];
  const items = wanted?.kind?.startsWith('KubeadmConfig')
    ? itemsFor(valueAt(wanted, shape.root), own)
    : [];
  const covered = changes.filter((change) => isCovered(change, items));
  let reached = current;
  for (const change of covered) reached = withChange(shape, reached, desired, change);
  // The agent applies all items. So if an item is an argument of the kubelet, the kubelet may restart even if only a
  // file changes now.
  const mayRestart = items.some(wire.isArgument);
  return accepted(hook, `covers ${counted(covered.length, 'change')}`, {
    ...patchesTo(shape, current, reached),
    ...(covered.length > 0 && !mayRestart ? { affectsAvailability: false } : {}),
  });
}

/**
 * Sends the agent of the node the whole desired configuration that the agent may change. The call is idempotent and
 * works on any replica.
 */
export async function configureNode(
  parts: UpdateParts,
  { desired }: UpdateMachineRequest,
  machine: Machine,
) {
  const found = await findNode(
    parts,
    `Machine ${machine.metadata.namespace}/${machine.metadata.name}`,
    machine,
  );
  if (typeof found === 'string') return failure(found);
  const { node } = found;
  const { name } = node.metadata;
  const items = itemsFor(desired.bootstrapConfig?.spec, [found]);
  const request = wire.configurationRequestOn(node);
  if (request && sameJson(request.items, items)) {
    const report = wire.configurationReportOn(node, request);
    if (report?.failure === undefined)
      return report ? DONE : underWay(`node ${name}: waiting for its agent`);
    return failure(
      `node ${name}: ${printable(report.failure)}; to try again, run: refit retry ${name}`,
    );
  }
  if (items.length === 0)
    return failure(
      `node ${name} has no agent that may change all files, keys and arguments in the bootstrap config`,
    );
  const text = JSON.stringify({ uid: randomUUID(), items } satisfies wire.ConfigurationRequest);
  const written = annotated(node, { [wire.CONFIGURATION_ANNOTATION]: text });
  // A conflict means that another replica or the kubelet wrote the Node. The next call reads it again.
  await unlessError(isConflict)(parts.workload.replace(nodes, written, { abort: parts.abort }));
  return underWay(`node ${name}: waiting for its agent`);
}

/**
 * Returns the items of the desired configuration that Refit can change on a running node. Returns no items if an agent
 * does not allow one of them, because Cluster API would treat a partial change as a complete change.
 */
function itemsFor(spec: unknown, own: Concerned): wire.ConfigurationItem[] {
  const all = Object.entries(FIELDS).flatMap(([path, field]) =>
    [...(byName(field, valueAt(spec, path.split('.')))?.values() ?? [])].flatMap(
      (entry) => field.item(entry) ?? [],
    ),
  );
  const items = all.filter(wire.isConfigurable);
  const mayAll = ({ node }: { node: Node }) =>
    items.every(({ name }) => wire.allows(configurableOn(node), name));
  const clashes = ({ name, content }: wire.ConfigurationItem) =>
    items.some(
      (other) =>
        other.name.startsWith(`${name}/`) || (other.name === name && other.content !== content),
    );
  const isTooMuch = JSON.stringify(items).length > wire.MOST_CHARACTERS;
  return own.length > 0 && own.every(mayAll) && !items.some(clashes) && !isTooMuch ? items : [];
}

type Entry = Readonly<Record<string, unknown>>;

/** Describes a list in a KubeadmConfig whose entries have names. */
interface Field {
  /** The member of an entry that contains its name. */
  readonly key: string;
  /** Returns the item for an agent; undefined for an entry that cannot be changed on a running node. */
  readonly item: (entry: Entry) => wire.ConfigurationItem | undefined;
  /** Returns the part of an entry that must not change. If an entry has no such part, the entry may also be new. */
  readonly fixed: (entry: Entry) => unknown;
}

const ARGUMENTS: Field = { key: 'name', item: argumentOf, fixed: () => undefined };

const FIELDS: Readonly<Record<string, Field>> = {
  files: { key: 'path', item: fileOf, fixed: () => undefined },
  users: { key: 'name', item: keysOf, fixed: ({ sshAuthorizedKeys: _keys, ...others }) => others },
  'initConfiguration.nodeRegistration.kubeletExtraArgs': ARGUMENTS,
  'joinConfiguration.nodeRegistration.kubeletExtraArgs': ARGUMENTS,
};

/**
 * Returns true if the items make this change completely. The items never cover the removal of an entry, because it is
 * unknown what a new node would have in place of the entry.
 */
function isCovered({ path, from, to }: Change, items: readonly wire.ConfigurationItem[]): boolean {
  const field = ownMember(FIELDS, path.join('.'));
  const before = byName(field, from);
  const after = byName(field, to);
  if (!field || !before || !after || [...before.keys()].some((name) => !after.has(name)))
    return false;
  return [...after].every(([name, entry]) => {
    const was = before.get(name);
    if (sameJson(was, entry)) return true;
    const isPossible = sameJson(was && field.fixed(was), field.fixed(entry));
    return isPossible && items.some((item) => sameJson(item, field.item(entry)));
  });
}

/** Returns the entries by name; undefined if a name is missing or occurs twice. */
function byName(
  { key = '' }: Partial<Field> = {},
  list: unknown = [],
): Map<string, Entry> | undefined {
  if (
    !Array.isArray(list) ||
    !list.every((entry) => isRecord(entry) && typeof ownMember(entry, key) === 'string')
  )
    return undefined;
  const entries = new Map(
    (list as Entry[]).map((entry) => [scalarText(ownMember(entry, key)), entry]),
  );
  return entries.size === list.length ? entries : undefined;
}

/**
 * Returns the item for a file that root owns and whose full content is in the entry; undefined for other files, and for
 * templates that cloud-init renders.
 */
function fileOf({
  path,
  content,
  append,
  encoding,
  owner = 'root',
  permissions = '0644',
  ...others
}: Entry) {
  const isOfRoot =
    /^root(:root)?$/.test(scalarText(owner)) && /^0?[0-7]{3}$/.test(scalarText(permissions));
  const isWhole = Object.keys(others).length === 0 && append !== true && encoding === undefined;
  if (!isOfRoot || !isWhole || typeof content !== 'string' || /\{[{%#]/.test(content))
    return undefined;
  // The text ends with exactly one line break, as on a new Machine.
  const bytes = Buffer.from(content.replace(/([^\n])\n*$/, '$1\n'));
  return {
    name: scalarText(path),
    content: bytes.toString('base64'),
    mode: Number.parseInt(scalarText(permissions), 8),
  };
}

/**
 * Returns the item for the keys of a user; undefined if there are no keys, because without keys nobody could log in as
 * this user.
 */
function keysOf({ name, sshAuthorizedKeys: keys }: Entry) {
  if (!Array.isArray(keys) || keys.length === 0) return undefined;
  if (!keys.every((key) => typeof key === 'string' && /^[ -~]+$/.test(key))) return undefined;
  const text = keys.map((key) => `${key}\n`).join('');
  return {
    name: `user:${scalarText(name)}`,
    content: Buffer.from(text).toString('base64'),
    mode: 0o600,
  };
}

function argumentOf({ name, value }: Entry) {
  return typeof value === 'string'
    ? { name: `kubelet:${scalarText(name)}`, content: value, mode: 0 }
    : undefined;
}
