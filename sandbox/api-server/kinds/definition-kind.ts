/** The kind CustomResourceDefinition: its defaults, and which definitions this server accepts. */

import { type Cause, cause, notImplemented } from '../failure.ts';
import { type Schema, uncheckedRule } from '../schema/schema.ts';
import type { ApiObject } from '../store.ts';
import type { PrinterColumn } from '../table/custom-columns.ts';
import { builtinKind } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';

interface Names {
  readonly plural: string;
  readonly kind: string;
  singular?: string;
  listKind?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

/** The members of a definition that this server reads. */
export interface Definition extends ApiObject {
  readonly spec: {
    readonly group: string;
    readonly names: Names;
    readonly scope: string;
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
      readonly schema?: { readonly openAPIV3Schema?: Schema };
      readonly subresources?: { readonly status?: unknown; readonly scale?: unknown };
      readonly additionalPrinterColumns?: readonly PrinterColumn[];
      readonly selectableFields?: readonly { readonly jsonPath: string }[];
    }[];
    conversion?: { strategy?: string };
  };
  status: { conditions: unknown[] | null; acceptedNames: Names; storedVersions: string[] };
}

/** Each instance adds a kind to the server: see lifecycle.ts. */
export const definitionKind = builtinKind(
  {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    namespaced: false,
  },
  shape.customResourceDefinition,
  {
    shortNames: ['crd', 'crds'],
    generation: true,
    // Names count as not accepted until the server has checked them.
    status: (object) => ({
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: (object as Definition).spec.versions
        .filter(({ storage }) => storage)
        .map(({ name }) => name),
    }),
    default(object) {
      const { spec } = object as Definition;
      spec.names.singular ??= spec.names.kind.toLowerCase();
      spec.names.listKind ??= `${spec.names.kind}List`;
      spec.conversion ??= { strategy: 'None' };
    },
    beginDeletion(object, now) {
      const { metadata, status } = object as Definition;
      const finalizer = 'customresourcecleanup.apiextensions.k8s.io';
      metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), finalizer])];
      const message =
        'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon';
      const reason = 'InstanceDeletionPending';
      const condition = {
        type: 'Terminating',
        status: 'True',
        lastTransitionTime: now,
        reason,
        message,
      };
      status.conditions = [...(status.conditions ?? []), condition];
    },
    validate(object, old) {
      const causes = validateDefinition(object as Definition, old as Definition | undefined);
      if (causes.length === 0) refuseUnchecked(object as Definition);
      return causes;
    },
  },
);

const SCOPES = ['Cluster', 'Namespaced'];

/** Finds the common mistakes. Only a real server checks the structural rules of schemas. */
function validateDefinition({ metadata, spec }: Definition, old: Definition | undefined): Cause[] {
  const causes: Cause[] = [];
  if (metadata.name !== `${spec.names.plural}.${spec.group}`) {
    causes.push(
      cause.invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'),
    );
  }
  if (!SCOPES.includes(spec.scope))
    causes.push(cause.notSupported('spec.scope', spec.scope, SCOPES));
  else if (old && spec.scope !== old.spec.scope) {
    causes.push(cause.invalid('spec.scope', spec.scope, 'field is immutable'));
  }
  const stored = spec.versions.filter(({ storage }) => storage).length;
  if (stored === 0)
    causes.push(
      cause.invalid('status.storedVersions', [], 'must have at least one stored version'),
    );
  if (stored !== 1) {
    causes.push(
      cause.invalid(
        'spec.versions',
        spec.versions,
        'must have exactly one version marked as storage version',
      ),
    );
  }
  spec.versions.forEach(({ schema }, index) => {
    const field = `spec.versions[${index}].schema.openAPIV3Schema`;
    if (schema?.openAPIV3Schema === undefined) causes.push(cause.required(field));
  });
  return causes;
}

function refuseUnchecked({ spec }: Definition): void {
  if (spec.versions.filter(({ served }) => served).length > 1)
    throw notImplemented('more than one served version');
  if (spec.conversion?.strategy !== 'None') throw notImplemented('conversion webhooks');
  for (const { name, schema, subresources } of spec.versions) {
    if (subresources?.scale !== undefined) throw notImplemented('the subresource scale');
    const rule = uncheckedRule(schema?.openAPIV3Schema, `the schema of ${name}`);
    if (rule !== undefined) throw notImplemented(rule);
  }
}
