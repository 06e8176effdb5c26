/** Makes the CustomResourceDefinition of a custom kind, with its structural schema. */
import { z } from 'zod';
import type { CustomKind } from '../../src/api/crd.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** Above 0 only with `-o wide`. */
  readonly priority?: number;
}

/** A kind as clusters get it. */
export interface DefinedKind extends CustomKind {
  /** The columns of `kubectl get` after the name; without any, the server shows the age. */
  readonly columns: readonly PrinterColumn[];
}

/** The definition with one version, served and stored; what the server fills in by itself is left out. */
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

/** Kubernetes lets a root say nothing of `metadata` but that it is an object: it has rules of its own for that. */
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

/** What `schema` accepts as input: fields with a default are optional. check-structural.ts checks it. */
export function structural(schema: z.ZodType): StructuralSchema {
  return z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    cycles: 'throw',
    reused: 'inline',
    override: ({ jsonSchema: node }) => {
      // Closed objects need no keyword: Kubernetes prunes what a schema does not name.
      if (node.additionalProperties === false) delete node.additionalProperties;
      // An object that keeps what its schema does not name says so by its extension alone.
      if (node['x-kubernetes-preserve-unknown-fields'] === true) delete node.additionalProperties;
      // zod bounds every integer by what a JavaScript number holds; Kubernetes takes the whole of int64.
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
      if (node['x-kubernetes-int-or-string'] !== true) return;
      delete node.type;
      node.anyOf = [{ type: 'integer' }, { type: 'string' }];
    },
  });
}
