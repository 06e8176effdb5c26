/** Sets of fields: paths from the root of an object, and their form in `managedFields`. A list is one field. */
import { isRecord } from '../../../src/util/json.ts';

export type Path = readonly string[];

/** Paths as JSON texts, so that they can be compared. */
export type FieldSet = ReadonlySet<string>;

/** Returns the path that a member of a set represents. */
export const pathOf = (field: string): Path => JSON.parse(field) as string[];

/** Returns the paths of the leaves of a value. An empty map is a leaf. */
export function fieldsOf(value: unknown, path: Path = []): FieldSet {
  if (!isRecord(value) || (Object.keys(value).length === 0 && path.length > 0))
    return new Set([JSON.stringify(path)]);
  return new Set(
    Object.entries(value).flatMap(([name, item]) => [...fieldsOf(item, [...path, name])]),
  );
}

interface Tree {
  [field: string]: Tree;
}

/** Encodes a set as a tree of `f:` names. A dot marks a field that is in the set together with some of its members. */
export function encode(fields: FieldSet): Tree {
  const root: Tree = {};
  for (const path of [...fields].map(pathOf)) {
    let place = root;
    for (const name of path) {
      const inner = place[`f:${name}`] ?? {};
      place[`f:${name}`] = inner;
      place = inner;
    }
    place['.'] = {};
  }
  return trim(root);
}

/** Removes a dot that is the only entry of its map. */
function trim(tree: Tree): Tree {
  const entries = Object.entries(tree).map(([name, inner]): [string, Tree] => [name, trim(inner)]);
  return entries.length === 1 && '.' in tree ? {} : Object.fromEntries(entries);
}

/** Decodes a tree: the opposite of `encode`. */
export function decode(tree: unknown, path: Path = []): FieldSet {
  if (!isRecord(tree)) return new Set();
  const own =
    path.length > 0 && (Object.keys(tree).length === 0 || '.' in tree)
      ? [JSON.stringify(path)]
      : [];
  const inner = Object.entries(tree).filter(([name]) => name !== '.');
  return new Set([
    ...own,
    ...inner.flatMap(([name, sub]) => [...decode(sub, [...path, name.slice(2)])]),
  ]);
}

/** Returns the value at the path; undefined if any step of the path is missing. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value);
}

/** Removes a field, and the maps around it that become empty. */
export function removeAt(root: Record<string, unknown>, path: Path): void {
  for (let length = path.length; length > 0; length--) {
    const parent = valueAt(root, path.slice(0, length - 1));
    if (!isRecord(parent)) return;
    delete parent[path[length - 1] ?? ''];
    if (Object.keys(parent).length > 0) return;
  }
}
