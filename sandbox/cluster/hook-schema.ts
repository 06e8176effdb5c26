/** Compares messages of the hooks with Cluster API's own schema, which names every field. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** The schema was generated from Cluster API's types and definitions. `npm run proof:capi` compares it with them. */
const FILE = new URL('hook-schema.json', import.meta.url);

type Definitions = Readonly<Record<string, z.core.JSONSchema.JSONSchema>>;

export const definitions = JSON.parse(readFileSync(FILE, 'utf8')) as Definitions;
/** The fields that managers of later releases know. Earlier managers ignore them. */
const LATER: Readonly<Record<string, object>> = {
  CanUpdateMachineResponse: { affectsAvailability: { type: 'boolean' } },
  CanUpdateMachineSetResponse: { affectsAvailability: { type: 'boolean' } },
};
const withLater: Definitions = Object.fromEntries(
  Object.entries(definitions).map(([name, schema]) => [
    name,
    { ...schema, properties: { ...schema.properties, ...LATER[name] } },
  ]),
);
const schemas = new Map<string, z.ZodType>();

/**
 * Returns one line for each part of `message` that a manager could not have sent, or would not understand. `kind` is a
 * name such as `UpdateMachineRequest`.
 */
export function schemaProblems(kind: string, message: unknown): string[] {
  const schema =
    schemas.get(kind) ?? z.fromJSONSchema({ $ref: `#/$defs/${kind}`, $defs: { ...withLater } });
  schemas.set(kind, schema);
  const { error } = schema.safeParse(message);
  return error?.issues.map((issue) => `${kind}.${issue.path.join('.')}: ${issue.message}`) ?? [];
}

/** Returns the message if it fits the schema; otherwise throws. */
export function fitting<T>(kind: string, message: T): T {
  const problems = schemaProblems(kind, message);
  if (problems.length > 0)
    throw new Error(`the message does not match the schema of the hooks: ${problems.join('; ')}`);
  return message;
}
