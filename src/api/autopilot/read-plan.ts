/** Owns reading a Plan of k0s from a file. */
import { readObject } from '../read-object.ts';
import { type Plan, planKind } from './plan.ts';

/**
 * @param file the name for messages; nothing is read here
 * @throws RefitError REFIT_FILE naming the file, the field, what was found and what would be right
 */
export function parsePlanFile(text: string, file: string): Plan {
  return readObject(text, file, [planKind]).object as Plan;
}
