/** Owns any JSON object, for property tests: few names at the top, so that two of them meet. */
import fc from 'fast-check';
import type { Json } from '../../src/util/json.ts';

/** As it comes over a wire: JSON has no negative zero. */
export const anyObject = fc
  .dictionary(fc.constantFrom('a', 'b', 'c/d'), fc.jsonValue({ maxDepth: 3 }))
  .map((object) => JSON.parse(JSON.stringify(object)) as Json);
