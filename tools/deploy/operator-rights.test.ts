/** Tests that the rights of each dialect alone are enough for its operator to hold a node. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

test.each([
  ['rbac.yaml', '', 'nodes'],
  ['rbac.yaml', 'autopilot.k0sproject.io', 'controlnodes'],
  ['rbac-cattle.yaml', '', 'nodes'],
])('%s: the operator may read and patch %s/%s', async (file, group, resource) => {
  const text = await readFile(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
  const roles = parseAllDocuments(text).map((document) => document.toJS() as Role);
  const rules = roles
    .filter(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name.endsWith('operator'))
    .flatMap((role) => role.rules ?? [])
    .filter(
      ({ apiGroups, resources }) => apiGroups?.includes(group) && resources?.includes(resource),
    );
  expect(rules.flatMap(({ verbs }) => verbs).toSorted()).toEqual(
    expect.arrayContaining(['get', 'patch']),
  );
});
