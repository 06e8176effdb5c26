/** Applies JSON patches (RFC 6902) as kube-apiserver does. The target is not changed. */
import { applyPatch, type Operation } from 'rfc6902';
import { isRecord, type Json } from '../../../src/util/json.ts';
import { ownMember } from '../../../src/util/own-member.ts';

export interface PatchOperation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: Json;
}

/** An operation of a JSON patch that does not fit its target, or is not valid. */
export class PatchError extends Error {
  override readonly name = 'PatchError';
}

/**
 * The library edits in place, and its operations need a parent object. So the target is the only member of this object.
 */
interface Holder {
  target: Json;
}

/** Throws a PatchError if an operation fails. */
export function applyJsonPatch(target: Json, operations: readonly PatchOperation[]): Json {
  const holder: Holder = { target: structuredClone(target) };
  for (const operation of operations) {
    const [error] = applyPatch(holder, [standardized(operation, holder)]);
    if (error) throw new PatchError(error.message);
  }
  return holder.target;
}

/**
 * Converts the forms that kube-apiserver allows in addition to the standard: `replace` adds a missing member, a missing
 * `value` is null, and negative indexes count from the end of a list.
 */
function standardized({ op, path, from, value = null }: PatchOperation, holder: Holder): Operation {
  const at = pointerIn(holder, path);
  const isNew =
    op === 'replace' && !hasValue(holder, at) && isRecord(valueAt(holder, at.slice(0, -1)));
  const operation = { op: isNew ? 'add' : op, path: textOf(at), value };
  const source = op === 'copy' || op === 'move' ? { from: textOf(pointerIn(holder, from)) } : {};
  // The library answers an unknown `op` with an error.
  return { ...operation, ...source } as Operation;
}

/** Returns the keys of the path from the holder to the place that the pointer names. */
function pointerIn(holder: Holder, pointer: unknown): readonly string[] {
  if (typeof pointer !== 'string' || (pointer !== '' && !pointer.startsWith('/')))
    throw new PatchError(`"${String(pointer)}" is no JSON pointer`);
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const found: string[] = ['target'];
  for (const key of keys) {
    const parent = valueAt(holder, found);
    const isFromEnd = Array.isArray(parent) && /^-\d+$/.test(key);
    found.push(isFromEnd ? String(parent.length + Number(key)) : key);
  }
  return found;
}

function valueAt(holder: Holder, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((at, key) => childOf(at, key), holder);
}

function childOf(parent: unknown, key: string): unknown {
  if (Array.isArray(parent)) return parent[Number(key)];
  return isRecord(parent) ? ownMember(parent, key) : undefined;
}

function hasValue(holder: Holder, keys: readonly string[]): boolean {
  return valueAt(holder, keys) !== undefined;
}

function textOf(keys: readonly string[]): string {
  return keys.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
