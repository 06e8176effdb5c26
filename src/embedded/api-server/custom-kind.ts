/** Owns how a kind is made from a CustomResourceDefinition. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../util/json.ts';
import { copyMember } from './builtin-kind.ts';
import { objectMeta } from './builtin-shape.ts';
import type { Definition } from './definition-kind.ts';
import { readShape } from './go-shape.ts';
import { groupVersion, type Kind } from './kind.ts';
import { validateMetadata, validateMetadataUpdate } from './metadata.ts';
import { dropNulls, prune, type Schema, setDefaults } from './schema.ts';
import { validateValue } from './schema-validation.ts';
import type { ApiObject, Metadata } from './store.ts';

export function customKind({ spec }: Definition): Kind | undefined {
  const served = spec.versions.find((version) => version.served);
  if (!served) return undefined;
  const { names, group } = spec;
  const schema: Schema = served.schema?.openAPIV3Schema ?? {};
  const hasStatus = served.subresources?.status !== undefined;
  const apiVersion = groupVersion({ group, version: served.name });
  return {
    group,
    version: served.name,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: spec.scope === 'Namespaced',
    builtin: false,
    hasStatus,
    createOnUpdate: false,
    unconditionalUpdate: false,
    naming: 'subdomain',
    blank: {},
    fields: Object.fromEntries((served.selectableFields ?? []).map(({ jsonPath }) => selectable(jsonPath))),
    read: (body, unknown) => readCustom(schema, { ...body, apiVersion, kind: names.kind }, unknown),
    prepare(object, old) {
      if (hasStatus && old) copyMember(object, old, 'status');
      else if (hasStatus) delete object['status'];
      object.metadata.generation = generationOf(object, old);
    },
    prepareStatus(object, old) {
      const { status } = object;
      const { resourceVersion, managedFields } = object.metadata;
      for (const member of Object.keys(object)) delete object[member];
      Object.assign(object, structuredClone(old), status === undefined ? {} : { status });
      if (status === undefined) delete object['status'];
      Object.assign(object.metadata, { resourceVersion }, managedFields && { managedFields });
    },
    validate(object, old) {
      const meta = old ? validateMetadataUpdate(object, old) : validateMetadata(object, 'subdomain');
      const { metadata: _new, ...rest } = object;
      const { metadata: _old, ...before } = old ?? { metadata: undefined };
      const { metadata: _any, ...properties } = schema.properties ?? {};
      return [...meta, ...validateValue(rest, { ...schema, properties }, '', old && before)];
    },
  };
}

/** `.spec.color` names the field selector `spec.color`. */
function selectable(jsonPath: string): [string, (object: ApiObject) => string] {
  const path = jsonPath.replace(/^\./, '').split('.');
  const read = (object: ApiObject): string => {
    const value = path.reduce<unknown>((at, member) => (isRecord(at) ? at[member] : undefined), object);
    return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : '';
  };
  return [path.join('.'), read];
}

const ROOT = ['apiVersion', 'kind', 'metadata'];

function readCustom(schema: Schema, body: Record<string, unknown>, unknown: string[]): ApiObject {
  const { apiVersion, kind, metadata, ...rest } = structuredClone(body);
  const lost: string[] = [];
  const meta = readShape(objectMeta, metadata, lost) as unknown as Metadata;
  unknown.push(...lost.map((path) => `metadata.${path}`));
  const known = Object.entries(schema.properties ?? {}).filter(([member]) => !ROOT.includes(member));
  const own: Schema = { ...schema, properties: Object.fromEntries(known) };
  const pruned: string[] = [];
  prune(rest, own, '', pruned);
  unknown.push(...pruned.toSorted());
  dropNulls(rest, own);
  setDefaults(rest, own);
  return { apiVersion, kind, metadata: meta, ...rest } as ApiObject;
}

/** Everything but the metadata counts, the status only where no subresource guards it (where it is, it did not change). */
function generationOf(object: ApiObject, old: ApiObject | undefined): number {
  if (!old) return 1;
  const { metadata: _new, ...next } = object;
  const { metadata, ...before } = old;
  return (metadata.generation ?? 1) + (isDeepStrictEqual(next, before) ? 0 : 1);
}
