/** Owns how a built-in kind is put together from its shape and the few rules that are its own. */
import { isRecord } from '../../util/json.ts';
import { readShape, type Struct } from './go-shape.ts';
import { groupVersion, type Kind } from './kind.ts';
import { bumpGeneration, validateMetadata, validateMetadataUpdate } from './metadata.ts';
import type { ApiObject } from './store.ts';

type Names = Pick<Kind, 'group' | 'version' | 'plural' | 'namespaced'> & { readonly shape: Struct };

type Own = Partial<
  Pick<
    Kind,
    | 'shortNames'
    | 'hasStatus'
    | 'createOnUpdate'
    | 'unconditionalUpdate'
    | 'naming'
    | 'fields'
    | 'validate'
    | 'beginDeletion'
  >
> & {
  /** Keeps `metadata.generation`; nodes, namespaces, leases and events have none. */
  readonly generation?: boolean;
  /** Members that only the status subresource may change; a new object starts with them as `initial` says. */
  readonly initial?: (object: ApiObject) => unknown;
  readonly default?: (object: ApiObject, old: ApiObject | undefined) => void;
};

export function builtinKind({ shape, ...names }: Names, own: Own): Kind {
  const kind = shape.name;
  const blank = Object.fromEntries(
    Object.entries(readShape(shape, {}, [])).filter(([member]) => !['metadata', 'apiVersion', 'kind'].includes(member)),
  );
  const apiVersion = groupVersion(names);
  return {
    ...names,
    kind,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    shortNames: own.shortNames ?? [],
    categories: [],
    builtin: true,
    hasStatus: own.hasStatus ?? false,
    createOnUpdate: own.createOnUpdate ?? false,
    unconditionalUpdate: own.unconditionalUpdate ?? false,
    naming: own.naming ?? 'subdomain',
    fields: own.fields ?? {},
    blank,
    ...(own.beginDeletion && { beginDeletion: own.beginDeletion }),
    read: (body, unknown) => ({ ...(readShape(shape, body, unknown) as ApiObject), apiVersion, kind }),
    prepare(object, old) {
      if (old !== undefined && own.hasStatus === true) copyMember(object, old, 'status');
      if (old === undefined && own.initial) object['status'] = own.initial(object);
      own.default?.(object, old);
      if (own.generation === true && old === undefined) object.metadata.generation = 1;
      if (own.generation === true && old !== undefined) bumpGeneration(object, old, ['spec']);
    },
    prepareStatus(object, old) {
      copyMember(object, old, 'spec');
      if (own.generation === true) bumpGeneration(object, old, []);
    },
    validate(object, old) {
      const meta = old ? validateMetadataUpdate(object, old) : validateMetadata(object, own.naming ?? 'subdomain');
      return [...meta, ...(own.validate?.(object, old) ?? [])];
    },
  };
}

export function copyMember(to: ApiObject, from: ApiObject, member: string): void {
  if (from[member] === undefined) delete to[member];
  else to[member] = from[member];
}

/** A member of a member as text, '' where there is none. */
export const textAt =
  (...path: readonly string[]) =>
  (object: ApiObject): string => {
    const value = path.reduce<unknown>((at, member) => (isRecord(at) ? at[member] : undefined), object);
    return typeof value === 'string' || typeof value === 'boolean' ? String(value) : '';
  };
