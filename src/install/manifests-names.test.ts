/**
 * Tests that roles contain the name of a host as text, even if YAML would read it as something
 * else.
 */
import { expect, test } from 'vitest';
import { controlNodeRoles, objectsIn } from './manifests.ts';

test.each(['101', '1e3', 'true', 'null'])('a host that is called %s', (name) => {
  const objects = objectsIn(controlNodeRoles(name, name)) as {
    rules?: { resourceNames?: unknown[] }[];
  }[];
  const names = objects.flatMap(({ rules = [] }) =>
    rules.flatMap(({ resourceNames = [] }) => resourceNames),
  );
  expect(new Set(names)).toEqual(new Set([name]));
});
