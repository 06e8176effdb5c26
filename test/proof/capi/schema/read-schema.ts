/**
 * Reads the schema of the hooks' messages from Cluster API's own source. It includes the schemas of Machines and
 * MachineSets.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { HOOK_GROUP } from '../../../../src/api/capi/hooks.ts';
import {
  type Definitions,
  definitionsOf,
  readGoTypes,
  referenceTo,
  type Schema,
} from './go-types.ts';

const HOOKS = ['Discovery', 'CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine'] as const;
const KINDS = HOOKS.flatMap((hook) => [`${hook}Request`, `${hook}Response`]);
const TEXTS = { type: 'object', additionalProperties: { type: 'string' } };
/** The managers reduce the metadata of all objects to these fields. */
const METADATA = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string' },
    namespace: { type: 'string' },
    labels: TEXTS,
    annotations: TEXTS,
  },
  additionalProperties: false,
};
const TEXT = { type: 'string', minLength: 1 };

export interface Sources {
  /** Folder of Go's types of the hooks. */
  readonly hooks: string;
  /** Folder of the definitions of Cluster API's core. */
  readonly definitions: string;
}

/** Returns the schemas of the messages by their kinds, and the schemas of the types that the messages refer to. */
export async function readSchema({ hooks, definitions }: Sources): Promise<Definitions> {
  const foreign = {
    'metav1.TypeMeta': {
      properties: { apiVersion: { const: HOOK_GROUP }, kind: TEXT },
      required: ['apiVersion', 'kind'],
    },
    'runtime.RawExtension': referenceTo('Object'),
    'clusterv1.Machine': referenceTo('Machine'),
    'clusterv1.MachineSet': referenceTo('MachineSet'),
  };
  const messages = Object.entries(definitionsOf(await readGoTypes(hooks), KINDS, foreign)).map(
    ([name, schema]) => {
      if (!KINDS.includes(name)) return [name, schema] as const;
      const properties = { ...(schema['properties'] as Definitions), kind: { const: name } };
      return [name, { ...schema, properties }] as const;
    },
  );
  return {
    ...Object.fromEntries(messages),
    Object: objectWith({ type: 'object', additionalProperties: true }),
    Machine: objectWith(await specOf(definitions, 'machines')),
    MachineSet: objectWith(await specOf(definitions, 'machinesets')),
  };
}

function objectWith(spec: Schema): Schema {
  const properties = { apiVersion: TEXT, kind: TEXT, metadata: METADATA, spec };
  return {
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata'],
    properties,
    additionalProperties: false,
  };
}

interface Definition {
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly schema: {
        readonly openAPIV3Schema: { readonly properties: { readonly spec: Schema } };
      };
    }[];
  };
}

async function specOf(folder: string, plural: string): Promise<Schema> {
  const text = await readFile(join(folder, `cluster.x-k8s.io_${plural}.yaml`), 'utf8');
  const { versions } = (parse(text) as Definition).spec;
  const version = versions.find(({ name }) => name === 'v1beta2');
  if (version === undefined) throw new Error(`${plural} have no version v1beta2`);
  return plain(version.schema.openAPIV3Schema.properties.spec) as Schema;
}

/** Removes descriptions and everything that only API servers understand. Makes the schema refuse unknown fields. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(
    ([key, field]) =>
      !(key === 'description' && typeof field === 'string') &&
      !key.startsWith('x-') &&
      key !== 'format',
  );
  const entries = kept.map(([key, field]) => [key, plain(field)] as const);
  const isObject = kept.some(([key, field]) => key === 'properties' && typeof field === 'object');
  return Object.fromEntries(isObject ? [...entries, ['additionalProperties', false]] : entries);
}
