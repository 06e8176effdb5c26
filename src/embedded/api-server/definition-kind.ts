/** Owns the kind CustomResourceDefinition: its members, its defaults, and which definitions this server takes. */
import { builtinKind } from './builtin-kind.ts';
import { objectMeta } from './builtin-shape.ts';
import { type Cause, cause, notImplemented } from './failure.ts';
import { struct } from './go-shape.ts';
import { type Schema, unjudgedRule } from './schema.ts';
import type { ApiObject } from './store.ts';

interface Names {
  readonly plural: string;
  readonly kind: string;
  singular?: string;
  listKind?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

interface DefinedVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema?: { readonly openAPIV3Schema?: Schema };
  readonly subresources?: { readonly status?: unknown; readonly scale?: unknown };
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
}

export interface Definition extends ApiObject {
  readonly spec: {
    readonly group: string;
    readonly names: Names;
    readonly scope: string;
    readonly versions: readonly DefinedVersion[];
    conversion?: { strategy?: string };
  };
  status: {
    conditions: unknown[] | null;
    acceptedNames: Names;
    storedVersions: string[] | null;
  };
}

const names = struct('CustomResourceDefinitionNames', {
  plural: 'string!',
  singular: 'string',
  shortNames: ['string'],
  kind: 'string!',
  listKind: 'string',
  categories: ['string'],
});

const version = struct('CustomResourceDefinitionVersion', {
  name: 'string!',
  served: 'bool!',
  storage: 'bool!',
  deprecated: 'bool',
  deprecationWarning: '*string',
  schema: 'raw',
  subresources: 'raw',
  additionalPrinterColumns: ['raw'],
  selectableFields: ['raw'],
});

const shape = struct('CustomResourceDefinition', {
  apiVersion: 'string',
  kind: 'string',
  metadata: objectMeta,
  spec: struct('CustomResourceDefinitionSpec', {
    group: 'string!',
    names,
    scope: 'string!',
    versions: [version],
    conversion: 'raw',
    preserveUnknownFields: 'bool',
  }),
  status: 'raw',
});

/** Until the server has looked at the names, they count as not accepted. */
const initialStatus = ({ spec }: Definition): Definition['status'] => ({
  conditions: null,
  acceptedNames: { plural: '', kind: '' },
  storedVersions: spec.versions.filter(({ storage }) => storage).map(({ name }) => name),
});

export const definitionKind = builtinKind(
  {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    namespaced: false,
    shape,
  },
  {
    shortNames: ['crd', 'crds'],
    hasStatus: true,
    generation: true,
    initial: (object) => initialStatus(object as Definition),
    default(object) {
      const { spec } = object as Definition;
      if (spec.names.kind !== '') {
        spec.names.singular ??= spec.names.kind.toLowerCase();
        spec.names.listKind ??= `${spec.names.kind}List`;
      }
      spec.conversion ??= { strategy: 'None' };
    },
    beginDeletion(object) {
      const { metadata } = object;
      metadata.finalizers = [...(metadata.finalizers ?? []), 'customresourcecleanup.apiextensions.k8s.io'];
    },
    validate(object, old) {
      const definition = object as Definition;
      const causes = validateDefinition(definition);
      if (causes.length === 0) refuseUnjudged(definition);
      return [...causes, ...(old ? validateNamesKept(definition, old as Definition) : [])];
    },
  },
);

const SCOPES = ['Cluster', 'Namespaced'];

function validateDefinition({ metadata, spec }: Definition): Cause[] {
  const causes: Cause[] = [];
  const expected = `${spec.names.plural}.${spec.group}`;
  if (metadata.name !== expected) {
    causes.push(cause.invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  for (const field of ['plural', 'kind'] as const) {
    if (spec.names[field] === '') causes.push(cause.required(`spec.names.${field}`));
  }
  if (!SCOPES.includes(spec.scope)) causes.push(cause.notSupported('spec.scope', spec.scope, SCOPES));
  spec.versions.forEach(({ schema }, index) => {
    const at = `spec.versions[${index}].schema.openAPIV3Schema`;
    if (schema?.openAPIV3Schema === undefined) causes.push(cause.required(at, 'schemas are required'));
  });
  if (spec.versions.filter(({ storage }) => storage).length !== 1) {
    causes.push(
      cause.invalid('spec.versions', spec.versions, 'must have exactly one version marked as storage version'),
    );
  }
  return causes;
}

function refuseUnjudged({ spec }: Definition): void {
  if (spec.versions.filter(({ served }) => served).length > 1) throw notImplemented('more than one served version');
  if (spec.conversion?.strategy !== 'None') throw notImplemented('conversion webhooks');
  for (const { name, schema, subresources } of spec.versions) {
    if (subresources?.scale !== undefined) throw notImplemented('the subresource scale');
    const rule = unjudgedRule(schema?.openAPIV3Schema, `the schema of ${name}`);
    if (rule !== undefined) throw notImplemented(rule);
  }
}

function validateNamesKept({ spec }: Definition, { spec: before }: Definition): Cause[] {
  const causes: Cause[] = [];
  if (spec.scope !== before.scope) causes.push(cause.invalid('spec.scope', spec.scope, 'field is immutable'));
  if (spec.names.kind !== before.names.kind) {
    causes.push(cause.invalid('spec.names.kind', spec.names.kind, 'field is immutable'));
  }
  return causes;
}
