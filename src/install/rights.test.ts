/** Shows that `refit install rights` knows each file with rights, and that no hint names a file that only a checkout has. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from 'vitest';
import { MODULES } from '../dialects/modules.ts';
import { kindsOfK0s, objectsIn } from './manifests.ts';
import { RIGHTS } from './right-names.ts';
import { rightsOf } from './rights.ts';

test('each file with rights is that of a component, or can be printed', () => {
  const files = globSync('deploy/rbac-*.yaml').map((file) => basename(file, '.yaml').slice(5));
  const others = files.filter((name) => !MODULES.some(({ install }) => install?.name === name));
  // The rights of k0s are in rbac.yaml, which this pattern does not match.
  expect([...RIGHTS]).toEqual([...others, 'k0s'].toSorted());
});

test.each(RIGHTS)('%s: what is printed has a role and a binding', (name) => {
  expect(rightsOf(name)).toMatch(/^kind: (Cluster)?Role$/m);
  expect(rightsOf(name)).toMatch(/^kind: (Cluster)?RoleBinding$/m);
});

test('the kinds for k0s are those of deploy/crds, without the kinds of other plans', () => {
  const names = objectsIn(kindsOfK0s()).map(({ metadata }) => metadata.name);
  expect(names.toSorted()).toEqual([
    'controlnodes.autopilot.k0sproject.io',
    'noderollouts.upgrade.refit.dev',
    'plans.autopilot.k0sproject.io',
    'statusshards.upgrade.refit.dev',
    'updateconfigs.autopilot.k0sproject.io',
    'upgradepolicies.upgrade.refit.dev',
  ]);
});

test('each hint that names rights names some that exist', () => {
  const sources = globSync('src/**/*.ts', { exclude: ['**/*.test.ts'] });
  const named = sources.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/refit install rights ([a-z0-9-]+)/g)].map(
      ([, name = '']) => name,
    ),
  );
  expect(named.length).toBeGreaterThan(4);
  expect(named.filter((name) => !RIGHTS.some((each) => each === name))).toEqual([]);
});
