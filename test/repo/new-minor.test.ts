/**
 * Tests that the facts of versions contain every minor version of Kubernetes that the repository uses. If one is missing,
 * docs/internals/new-minor.md says what to do.
 */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { factsOfMinor, NEWEST_KNOWN, OLDEST_KNOWN } from '../../src/versions/facts.ts';
import { RELEASES } from '../../tools/controlplane/releases.ts';
import { FROM, TO } from '../support/kubeadm/suite.ts';
import { ROOT } from './tree.ts';

interface Used {
  readonly where: string;
  readonly minor: number;
  /** The minor version of the etcd 3 whose libraries this version of Kubernetes uses. */
  readonly etcd?: number | undefined;
}

/**
 * Returns the versions that a Go module requires. The libraries of Kubernetes 1.36 have the version 0.36. A pre-release is left out,
 * because no cluster is upgraded to it.
 */
function usedIn(where: string, text: string): Used[] {
  const found = [...text.matchAll(/\bk8s\.io\/(?:api|kubernetes) v[01]\.(\d+)\.\d+(?![-\d])/g)];
  const isKubernetes = /\bk8s\.io\/kubernetes v/.test(text);
  const [, etcd] = /\bgo\.etcd\.io\/etcd\/client\/v3 v3\.(\d+)\./.exec(text) ?? [];
  return found.map(([, minor]) => ({
    where,
    minor: Number(minor),
    etcd: isKubernetes && etcd !== undefined ? Number(etcd) : undefined,
  }));
}

function usedByPrograms(): Used[] {
  const minorOf = (version: string): number => Number(version.split('.')[1]);
  const programs = Object.entries({ FROM, TO }).map(([where, version]) => ({
    where,
    minor: minorOf(version),
  }));
  const releases = [...RELEASES.values()].map(({ kubernetes, etcd }) => ({
    where: 'RELEASES',
    minor: minorOf(kubernetes),
    etcd: minorOf(etcd),
  }));
  return [...programs, ...releases];
}

/** Returns the used versions whose facts are not known, or differ. */
function lacking(used: readonly Used[], newest: number): string[] {
  const found = used.flatMap(({ where, minor, etcd }) => {
    // Versions of Kubernetes that nobody maintains, which only the tests run on, have no facts.
    const known = factsOfMinor(minor)?.etcd ?? (minor < OLDEST_KNOWN ? '' : 'no etcd');
    return [
      ...(minor > newest ? [`${where}: v1.${minor} is newer than the known v1.${newest}`] : []),
      ...(etcd === undefined || known === '' || known.startsWith(`3.${etcd}.`)
        ? []
        : [`${where}: v1.${minor} comes with etcd 3.${etcd}, but its facts say ${known}`]),
    ];
  });
  return [...new Set(found)];
}

const modules = globSync('tools/**/go.mod', { cwd: ROOT }).flatMap((path) =>
  usedIn(path, readFileSync(`${ROOT}${path}`, 'utf8')),
);

test('the facts of versions know every Kubernetes version that the Go modules and the tests use', () => {
  expect(modules.filter(({ etcd }) => etcd !== undefined).length).toBeGreaterThanOrEqual(5);
  expect(lacking([...modules, ...usedByPrograms()], NEWEST_KNOWN)).toEqual([]);
});

test('a used Kubernetes version without facts is reported', () => {
  const next = NEWEST_KNOWN + 1;
  const text = `require (\n\tgo.etcd.io/etcd/client/v3 v3.9.1 // indirect\n\tk8s.io/kubernetes v1.${next}.0 // indirect\n)\n`;
  expect(lacking(usedIn('tools/kube/go.mod', text), NEWEST_KNOWN)).toEqual([
    `tools/kube/go.mod: v1.${next} is newer than the known v1.${NEWEST_KNOWN}`,
    expect.stringMatching(/: v1\.\d+ comes with etcd 3\.9, but its facts say no etcd$/),
  ]);
  expect(lacking(usedIn('go.mod', `\tk8s.io/api v0.${next}.0\n`), NEWEST_KNOWN)).toHaveLength(1);
});
