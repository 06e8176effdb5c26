/** Makes a kind from a CustomResourceDefinition. */

import { readShape } from '../schema/go-shape.ts';
import { dropNulls, prune, type Schema, setDefaults } from '../schema/schema.ts';
import { validateValue } from '../schema/schema-validation.ts';
import type { ApiObject, Metadata } from '../store.ts';
import { customColumns } from '../table/custom-columns.ts';
import { bumpGeneration } from '../writes/metadata.ts';
import { textFields } from './builtin-kind.ts';
import { objectMeta } from './builtin-shape.ts';
import type { Definition } from './definition-kind.ts';
import { groupVersion, type Kind } from './kind.ts';

/** Returns the kind; undefined if the definition serves no version. */
export function customKind({ spec }: Definition): Kind | undefined {
  const served = spec.versions.find((version) => version.served);
  if (!served) return undefined;
  const { names, group } = spec;
  const apiVersion = groupVersion({ group, version: served.name });
  const hasStatus = served.subresources?.status !== undefined;
  const schema = withoutRoot(served.schema?.openAPIV3Schema ?? {});
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
    schema: served.schema?.openAPIV3Schema ?? {},
    columns: customColumns(served.additionalPrinterColumns),
    hasStatus,
    createOnUpdate: false,
    unconditionalUpdate: false,
    naming: 'subdomain',
    blank: {},
    fields: textFields(
      ...(served.selectableFields ?? []).map(({ jsonPath }) => jsonPath.replace(/^\./, '')),
    ),
    read: (body, unknown) => ({
      apiVersion,
      kind: names.kind,
      ...readCustom(schema, body, unknown),
    }),
    prepare(object, old) {
      if (hasStatus) replaceMember(object, 'status', old?.['status']);
      bumpGeneration(object, old, membersOf);
    },
    prepareStatus(object, old) {
      const { status, metadata } = object;
      for (const [member, value] of Object.entries(old)) object[member] = value;
      replaceMember(object, 'status', status);
      // An update of the status of a custom object changes no metadata, not even labels.
      object.metadata = {
        ...old.metadata,
        ...(metadata.managedFields && { managedFields: metadata.managedFields }),
      };
    },
    validate: (object, old) => validateValue(membersOf(object), schema, '', old && membersOf(old)),
  };
}

const ROOT = ['apiVersion', 'kind', 'metadata'];

/** Removes type and metadata from the schema, because the server itself checks them. */
function withoutRoot(schema: Schema): Schema {
  const own = Object.entries(schema.properties ?? {}).filter(([member]) => !ROOT.includes(member));
  return { ...schema, properties: Object.fromEntries(own) };
}

function membersOf(object: ApiObject | Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([member]) => !ROOT.includes(member)));
}

function readCustom(
  schema: Schema,
  body: Record<string, unknown>,
  unknown: string[],
): { metadata: Metadata } {
  const lost: string[] = [];
  const metadata = readShape(objectMeta, body['metadata'], lost) as unknown as Metadata;
  unknown.push(...lost.map((path) => `metadata.${path}`));
  const members = structuredClone(membersOf(body));
  const pruned: string[] = [];
  prune(members, schema, '', pruned);
  unknown.push(...pruned.toSorted());
  dropNulls(members, schema);
  setDefaults(members, schema);
  return { metadata, ...members };
}

function replaceMember(object: ApiObject, member: string, value: unknown): void {
  if (value === undefined) delete object[member];
  else object[member] = value;
}
