/** Owns any JSON object, for property tests: few names at the top, so that two of them meet. */
import { constantFrom, dictionary, jsonValue } from 'fast-check';
import type { Json } from '../../src/util/json.ts';

/** As it comes over a wire: JSON has no negative zero. */
export const anyObject = dictionary(constantFrom('a', 'b', 'c/d'), jsonValue({ maxDepth: 3 })).map(
  (object) => JSON.parse(JSON.stringify(object)) as Json,
);
