/** Tests that the rights can be applied without a chart: each Namespace that they use is created first. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

const DEPLOY = new URL('../../deploy/', import.meta.url);
/** The files with which the installation of each dialect begins. The other files are applied after one of them. */
const BASES = ['rbac.yaml', 'rbac-cattle.yaml', 'rbac-capi.yaml', 'rbac-kubeadm.yaml'];
/** Every cluster has these. */
const ALWAYS = ['default', 'kube-system', 'kube-node-lease'];
/** Files for one dialect. They may use what the base of this dialect creates. */
const OWN: Readonly<Record<string, string>> = {
  'rbac-controlnode.yaml': 'rbac.yaml',
  'rbac-controlnode-workloads.yaml': 'rbac.yaml',
};

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

function manifestsOf(file: string): Manifest[] {
  const text = readFileSync(new URL(file, DEPLOY), 'utf8');
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

const createdBy = (file: string): string[] =>
  manifestsOf(file).flatMap(({ kind, metadata }) => (kind === 'Namespace' ? [metadata.name] : []));

const FILES = readdirSync(DEPLOY).filter((name) => /^rbac.*\.yaml$/.test(name));

test.each(FILES)('%s uses only Namespaces that exist when it is applied', (file) => {
  const bases = BASES.includes(file) ? [file] : [OWN[file] ?? BASES].flat();
  const missing = bases.flatMap((base) => {
    const known = [...ALWAYS, ...createdBy(base), ...createdBy(file)];
    return manifestsOf(file)
      .map(({ metadata }) => metadata.namespace)
      .filter((name) => name !== undefined && !known.includes(name))
      .map((name) => `${name} after ${base}`);
  });
  expect(missing).toEqual([]);
});
