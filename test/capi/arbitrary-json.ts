/** Random JSON objects for property tests, with few names so that two of them overlap. */
import { constantFrom, dictionary, jsonValue } from 'fast-check';
import type { Json } from '../../src/util/json.ts';

/** As it comes over a wire: JSON has no negative zero. */
export const anyObject = dictionary(constantFrom('a', 'b', 'c/d'), jsonValue({ maxDepth: 3 })).map(
  (object) => JSON.parse(JSON.stringify(object)) as Json,
);
