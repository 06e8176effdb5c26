/** Makes the CustomResourceDefinition of a custom kind, with its structural schema. */
import { z } from 'zod';
import { type Condition, clusterScoped, type KubeObject, type Resource } from '../kube/resources.ts';

/** An object of a schema, which refuses fields that it does not name. */
export function object<S extends z.core.$ZodLooseShape>(what: string, fields: S): z.ZodObject<S, z.core.$strict> {
  return z.strictObject(fields).describe(what);
}

export function text(what: string): z.ZodExactOptional<z.ZodString> {
  return z.string().exactOptional().describe(what);
}

export function flag(what: string): z.ZodExactOptional<z.ZodBoolean> {
  return z.boolean().exactOptional().describe(what);
}

export function optional<T extends z.ZodType>(what: string, schema: T): z.ZodExactOptional<T> {
  return schema.exactOptional().describe(what);
}

export function list<T extends z.ZodType>(what: string, item: T): z.ZodExactOptional<z.ZodArray<T>> {
  return optional(what, z.array(item));
}

export function time(what: string): z.ZodString {
  return z.string().meta({ format: 'date-time', description: what });
}

/** As Go has it; `whole` is for what has limits of its own. */
export function integer(format: 'int32' | 'int64', what: string): z.ZodExactOptional<z.ZodInt> {
  return z.int().meta({ format }).exactOptional().describe(what);
}

export function whole(what: string, most = Number.MAX_SAFE_INTEGER): z.ZodExactOptional<z.ZodInt> {
  return z.int().min(0).max(most).exactOptional().describe(what);
}

export function choice<const T extends string>(what: string, ...values: readonly T[]) {
  return z.enum(values).exactOptional().describe(what);
}

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** Above 0 only with `-o wide`. */
  readonly priority?: number;
}

export interface CustomKind {
  readonly resource: Resource;
  /** The fields beside `apiVersion`, `kind` and `metadata`; a `status` is a subresource. */
  readonly schema: z.ZodObject;
  /** The columns of `kubectl get` after the name; without any, the server shows the age. */
  readonly columns: readonly PrinterColumn[];
}

export interface CustomResourceDefinition extends KubeObject, Pick<ReturnType<typeof definitionOf>, 'spec'> {
  status?: { conditions?: Condition[] };
}

export const customResourceDefinitions = clusterScoped<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
);

/** The definition with one version, served and stored; what the server fills in by itself is left out. */
export function definitionOf({ resource, schema, columns }: CustomKind) {
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
  const members = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } };
  return { ...rest, properties: { ...members, ...(properties as Record<string, StructuralSchema>) } };
}

/** A node of a structural schema, as plain JSON so that it keeps all extensions. */
export type StructuralSchema = Readonly<Record<string, unknown>>;

/** What `schema` accepts as input: fields with a default are optional. tools/crds/check-structural.ts checks it. */
export function structural(schema: z.ZodType): StructuralSchema {
  return z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    cycles: 'throw',
    reused: 'inline',
    override: ({ jsonSchema: node }) => {
      // Closed objects need no keyword: Kubernetes prunes what a schema does not name.
      if (node.additionalProperties === false) delete node.additionalProperties;
      // zod bounds every integer by what a JavaScript number holds; Kubernetes takes the whole of int64.
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
      if (node['x-kubernetes-int-or-string'] !== true) return;
      delete node.type;
      node.anyOf = [{ type: 'integer' }, { type: 'string' }];
    },
  });
}
