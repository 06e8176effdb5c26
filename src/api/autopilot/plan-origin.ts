/** Reads which UpdateConfig created a Plan, and for which release. Any author of Plans can write this annotation. */
import { z } from 'zod';
import { parseJson } from '../../util/json.ts';
import { faultOfObjectName } from '../names.ts';
import { ORIGIN_ANNOTATION, type Plan } from './plan.ts';

const originSchema = z.object({
  /** The name of the UpdateConfig. Messages quote it, so it must be a name that an object can have. */
  config: z.string().refine((name) => faultOfObjectName(name) === undefined),
  version: z.string(),
});

/** Returns the UpdateConfig and the release for which the Plan was created; undefined if no UpdateConfig created it. */
export function originOf({ metadata }: Pick<Plan, 'metadata'>) {
  return originSchema.safeParse(parseJson(metadata.annotations?.[ORIGIN_ANNOTATION])).data;
}
