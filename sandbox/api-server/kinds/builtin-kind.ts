/** Makes a built-in kind from its shape and its few special rules. */
import { isRecord } from '../../../src/util/json.ts';
import { readShape, type Struct } from '../schema/go-shape.ts';
import type { ApiObject } from '../store.ts';
import { bumpGeneration } from '../writes/metadata.ts';
import { groupVersion, type Kind } from './kind.ts';

type Names = Pick<Kind, 'group' | 'version' | 'plural' | 'namespaced'>;

type Own = Partial<
  Pick<
    Kind,
    | 'shortNames'
    | 'categories'
    | 'createOnUpdate'
    | 'unconditionalUpdate'
    | 'naming'
    | 'fields'
    | 'beginDeletion'
  >
> & {
  /** True if the server maintains `metadata.generation`. Nodes, namespaces, leases and events have no generation. */
  readonly generation?: boolean;
  /**
   * Returns the status of a new object, whatever status the client sent. Present for all kinds whose status is a
   * subresource.
   */
  readonly status?: (object: ApiObject) => unknown;
  readonly default?: (object: ApiObject, old: ApiObject | undefined) => void;
  readonly validate?: Kind['validate'];
};

/** Makes a built-in kind. The default options are right for most built-in kinds. */
export function builtinKind(
  names: Names,
  shape: Struct,
  { status, generation = false, ...own }: Own,
): Kind {
  const kind = shape.name;
  const { metadata: _metadata, ...blank } = readShape(shape, {}, []);
  const count = (object: ApiObject, old: ApiObject | undefined): void => {
    if (generation) bumpGeneration(object, old, ({ spec }) => spec);
  };
  return {
    ...names,
    kind,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    shortNames: own.shortNames ?? [],
    categories: own.categories ?? [],
    builtin: true,
    columns: [],
    hasStatus: status !== undefined,
    createOnUpdate: own.createOnUpdate ?? false,
    unconditionalUpdate: own.unconditionalUpdate ?? false,
    naming: own.naming ?? 'subdomain',
    fields: own.fields ?? {},
    blank,
    ...(own.beginDeletion && { beginDeletion: own.beginDeletion }),
    read: (body, unknown) => ({
      ...(readShape(shape, body, unknown) as ApiObject),
      apiVersion: groupVersion(names),
      kind,
    }),
    prepare(object, old) {
      if (status !== undefined) object['status'] = old ? old['status'] : status(object);
      own.default?.(object, old);
      count(object, old);
    },
    prepareStatus(object, old) {
      object['spec'] = old['spec'];
      count(object, old);
    },
    validate: own.validate ?? (() => []),
  };
}

/** Returns a function that reads the member at `path` as text. It returns '' if the member does not exist. */
export const textAt =
  (path: string) =>
  (object: ApiObject): string => {
    const value = path
      .split('.')
      .reduce<unknown>((at, member) => (isRecord(at) ? at[member] : undefined), object);
    return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : '';
  };

/** Makes field selectors for the members at these paths. */
export const textFields = (...paths: readonly string[]): Kind['fields'] =>
  Object.fromEntries(paths.map((path) => [path, textAt(path)]));
