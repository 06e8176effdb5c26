/** Makes the CustomResourceDefinition of a custom kind, with its structural schema. */
import { z } from 'zod';
import type { CustomKind } from '../../src/api/crd.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** A column with a priority above 0 appears only with `-o wide`. */
  readonly priority?: number;
}

/** A kind with the columns that clusters get in its definition. */
export interface DefinedKind extends CustomKind {
  /** The columns of `kubectl get` after the name. If the list is empty, the server shows the age. */
  readonly columns: readonly PrinterColumn[];
}

/**
 * Returns the definition with one version, which is served and stored. Leaves out the fields that the API server sets
 * itself.
 */
export function definitionOf({ resource, schema, columns }: DefinedKind) {
  const { group, version, kind, plural, namespaced } = resource;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: rootOf(structural(schema)) },
          ...('status' in schema.shape ? { subresources: { status: {} } } : {}),
          ...(columns.length > 0 ? { additionalPrinterColumns: columns } : {}),
        },
      ],
    },
  };
}

/**
 * Returns the root of the schema. In a root, Kubernetes allows for `metadata` only that it is an object, because it has
 * its own rules for metadata.
 */
function rootOf({ properties, ...rest }: StructuralSchema): StructuralSchema {
  const members = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
  };
  return {
    ...rest,
    properties: { ...members, ...(properties as Record<string, StructuralSchema>) },
  };
}

/** A node of a structural schema, as plain JSON so that it keeps all extensions. */
export type StructuralSchema = Readonly<Record<string, unknown>>;

/**
 * Returns the schema of the input that `schema` accepts, so fields with a default are optional. check-structural.ts
 * checks the result.
 */
export function structural(schema: z.ZodType): StructuralSchema {
  return z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    cycles: 'throw',
    reused: 'inline',
    override: ({ jsonSchema: node }) => {
      // Closed objects need no keyword, because Kubernetes prunes fields that the schema does not name.
      if (node.additionalProperties === false) delete node.additionalProperties;
      // For an object that keeps fields that its schema does not name, the extension alone is enough.
      if (node['x-kubernetes-preserve-unknown-fields'] === true) delete node.additionalProperties;
      // zod limits every integer to the range of a JavaScript number. Kubernetes accepts the whole range of int64.
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
      if (node['x-kubernetes-int-or-string'] !== true) return;
      delete node.type;
      node.anyOf = [{ type: 'integer' }, { type: 'string' }];
    },
  });
}
