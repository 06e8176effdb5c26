/** Tests that the table of rights in the guide for k0s has exactly the rights that the files in deploy/ grant. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { RESERVED_NAMESPACES } from '../../src/kube/job-namespaces.ts';
import { guideText, ROOT } from './tree.ts';

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly {
    readonly resources?: readonly string[];
    readonly nonResourceURLs?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

interface Bound extends Role {
  readonly roleRef?: { readonly name: string };
  readonly subjects?: readonly { readonly name: string }[];
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
const NONE = '—';
const LEADER = /^(refit-controller|refit-api-servers)$/;
const AGENT = /^(refit-controlnode(-workloads)?:CONTROL_NODE|refit-agent|refit-api-servers)$/;

const roles = ['rbac.yaml', 'rbac-controlnode.yaml', 'rbac-controlnode-workloads.yaml'].flatMap(
  (file) =>
    parseAllDocuments(readFileSync(`${ROOT}deploy/${file}`, 'utf8')).map(
      (document) => document.toJS() as Role,
    ),
);

/** Returns the verbs for each resource or path, over all roles whose name matches. */
function grantedTo(names: RegExp): ReadonlyMap<string, string> {
  const verbsOf = new Map<string, Set<string>>();
  for (const { metadata, rules = [] } of roles) {
    if (!names.test(metadata.name)) continue;
    for (const { resources = [], nonResourceURLs = [], verbs } of rules)
      for (const object of [...resources, ...nonResourceURLs]) {
        const known = verbsOf.get(object) ?? new Set();
        verbsOf.set(object, new Set([...known, ...verbs]));
      }
  }
  return new Map([...verbsOf].map(([object, verbs]) => [object, inOrder(verbs)]));
}

function inOrder(verbs: ReadonlySet<string>): string {
  const unknown = [...verbs].filter((verb) => !VERBS.includes(verb));
  expect(unknown).toEqual([]);
  return VERBS.filter((verb) => verbs.has(verb)).join(', ');
}

/**
 * The rows of the table. The cells are: the objects, the rights in the documents of k0s, the rights of the leader, and
 * the rights of an agent.
 */
const rows = guideText('k0s')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => cells.length === 7 && /^`[a-z/]+`/.test(cells[1] ?? ''))
  .filter((cells) => [cells[2], cells[3], cells[4]].every((cell) => isVerbs(cell ?? '')));

function isVerbs(cell: string): boolean {
  return cell === NONE || cell.split(', ').every((verb) => VERBS.includes(verb));
}

function inTable(column: number): ReadonlyMap<string, string> {
  const entries = rows.flatMap((cells) =>
    (cells[1] ?? '')
      .split(', ')
      .map((name): [string, string] => [name.replaceAll('`', ''), cells[column] ?? '']),
  );
  return new Map(entries.filter(([, verbs]) => verbs !== NONE));
}

test('the table of rights repeats the rights in the documentation of k0s', () => {
  expect(Object.fromEntries(inTable(2))).toEqual({
    plans: 'list, watch',
    'plans/status': 'update',
    nodes: 'list, watch, update, patch',
    pods: 'list',
    'pods/eviction': 'create',
    daemonsets: 'get',
  });
});

test('the leader has exactly the rights that the table of rights shows', () => {
  expect(Object.fromEntries(inTable(3))).toEqual(Object.fromEntries(grantedTo(LEADER)));
});

test('an agent on a controller has exactly the rights that the table of rights shows', () => {
  expect(Object.fromEntries(inTable(4))).toEqual(Object.fromEntries(grantedTo(AGENT)));
});

test('no Job of a policy may run in a namespace in which a role file grants another right', () => {
  const granted = globSync(`${ROOT}deploy/rbac*.yaml`).flatMap((path) =>
    parseAllDocuments(readFileSync(path, 'utf8')).flatMap((document) => {
      const isRole = document.get('kind') === 'Role';
      return isRole ? [String(document.getIn(['metadata', 'namespace']))] : [];
    }),
  );
  expect(granted).toContain('refit-hooks');
  const others = new Set(granted.filter((name) => name !== 'refit-hooks'));
  expect([...others].filter((name) => !RESERVED_NAMESPACES.includes(name))).toEqual([]);
});

test('the namespace of hooks refuses pods that use the host', () => {
  const [namespace] = parseAllDocuments(readFileSync(`${ROOT}deploy/rbac-hooks.yaml`, 'utf8'));
  expect(namespace?.toJS()).toMatchObject({
    kind: 'Namespace',
    metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'baseline' } },
  });
});

test('no role of deploy/ lets a person write the status of NodeRollouts, from which roll-backs take URL and hash', () => {
  const people = /^refit-(viewer|operator|approver)$/;
  const all = globSync(`${ROOT}deploy/rbac*.yaml`).flatMap((path) =>
    parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as Bound),
  );
  const writers = all
    .filter(({ rules = [] }) =>
      rules.some(
        ({ resources = [], verbs }) =>
          resources.some((name) => /^(noderollouts\/status|\*|\*\/\*|\*\/status)$/.test(name)) &&
          verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)),
      ),
    )
    .map(({ metadata }) => metadata.name);
  expect(writers).toContain('refit-cattle');
  const bound = all.filter(({ roleRef }) => writers.includes(roleRef?.name ?? ''));
  expect(bound).not.toEqual([]);
  for (const { subjects = [] } of bound)
    for (const { name } of subjects) expect(name).not.toMatch(people);
});
