/** Owns merge patches (RFC 7386) and JSON patches (RFC 6902) as pure functions over JSON. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../../src/util/json.ts';
import { ApiFailure, badRequest } from '../failure.ts';

type Members = Record<string, unknown>;

/** Leaves the target as it is; a null in the patch removes the member. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Members = isRecord(target) ? { ...target } : {};
  for (const [member, value] of Object.entries(patch)) {
    if (value === null) delete result[member];
    else result[member] = mergePatch(result[member], value);
  }
  return result;
}

interface Operation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly from?: unknown;
  readonly value?: unknown;
}

/** How the server answers any JSON patch that cannot be carried out. */
const inapplicable = (): ApiFailure =>
  new ApiFailure(422, 'Invalid', 'the server rejected our request due to an error in our request', {});

/** Operations that kube-apiserver takes in one patch. */
const OPERATION_LIMIT = 10_000;

/** Leaves the target as it is. One operation that fails, a test among them, fails all: throws 422. */
export function jsonPatch(target: Members, operations: unknown): unknown {
  if (!Array.isArray(operations)) {
    const found = isRecord(operations) ? 'object' : typeof operations;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${found} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (operations.length > OPERATION_LIMIT) {
    const message = `The allowed maximum operations in a JSON patch is ${OPERATION_LIMIT}, got ${operations.length}`;
    throw new ApiFailure(413, 'RequestEntityTooLarge', message);
  }
  const root = { '': structuredClone(target) as unknown };
  for (const operation of operations as Operation[]) applyOperation(root, operation);
  return root[''];
}

function applyOperation(root: Members, { op, path, from, value }: Operation): void {
  const at = pointer(path);
  switch (op) {
    case 'add':
      return add(root, at, structuredClone(value));
    case 'remove':
      return remove(root, at);
    case 'replace':
      return replace(root, at, structuredClone(value));
    case 'move': {
      const moved = valueAt(root, pointer(from));
      remove(root, pointer(from));
      return add(root, at, moved);
    }
    case 'copy':
      return add(root, at, structuredClone(valueAt(root, pointer(from))));
    case 'test':
      if (!isDeepStrictEqual(valueAt(root, at), value)) throw inapplicable();
      return undefined;
    default:
      throw inapplicable();
  }
}

/** Steps from the root, which itself is the member '' of its holder: so every place has a holder and a name. */
function pointer(path: unknown): string[] {
  if (typeof path !== 'string' || (path !== '' && !path.startsWith('/'))) throw inapplicable();
  return path.split('/').map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function holderOf(root: Members, path: readonly string[]): { holder: Members | unknown[]; name: string } {
  const holder = path.slice(0, -1).reduce<unknown>((at, step) => childOf(at, step), root);
  if (!isRecord(holder) && !Array.isArray(holder)) throw inapplicable();
  return { holder, name: path.at(-1) ?? '' };
}

const valueAt = (root: Members, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, step) => childOf(at, step), root);

function childOf(parent: unknown, step: string): unknown {
  if (Array.isArray(parent)) return parent[indexIn(parent, step, parent.length - 1)];
  if (!isRecord(parent) || !Object.hasOwn(parent, step)) throw inapplicable();
  return parent[step];
}

function indexIn(list: readonly unknown[], step: string, last: number): number {
  const index = /^-\d+$/.test(step) ? list.length + Number(step) : Number(step);
  if (!/^-?\d+$/.test(step) || index < 0 || index > last) throw inapplicable();
  return index;
}

function add(root: Members, path: readonly string[], value: unknown): void {
  const { holder, name } = holderOf(root, path);
  if (!Array.isArray(holder)) holder[name] = value;
  else holder.splice(name === '-' ? holder.length : indexIn(holder, name, holder.length), 0, value);
}

function replace(root: Members, path: readonly string[], value: unknown): void {
  const { holder, name } = holderOf(root, path);
  if (Array.isArray(holder)) holder[indexIn(holder, name, holder.length - 1)] = value;
  else holder[name] = value;
}

function remove(root: Members, path: readonly string[]): void {
  const { holder, name } = holderOf(root, path);
  if (Array.isArray(holder)) holder.splice(indexIn(holder, name, holder.length - 1), 1);
  else if (Object.hasOwn(holder, name)) delete holder[name];
  else throw inapplicable();
}
