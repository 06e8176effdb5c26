/**
 * Proves which of several hops a run takes, depending on the hosts and on a run that has not ended, and which workers
 * are not upgraded in the hop.
 */
import { describe, expect, test } from 'vitest';
import { type HostFacts, parseFacts } from '../host/probe.ts';
import { binariesFor } from '../host/scripts.ts';
import { nextHop } from './hops.ts';
import { type Manifest, parseManifest } from './manifest.ts';
import { newPlan, requestFor } from './plan-object.ts';

const HOSTS = '{name: cp1, role: controlPlane}, {name: w1, role: worker}';
const binaries = (version: string): string => `{kubeadm: {path: /${version}}, kubelet: {path: /b}}`;
const hops = ['1.37.4', 'v1.38.2'].map(
  (version) => `{version: ${version}, binaries: ${binaries(version)}}`,
);
const manifest = parseManifest(
  `{version: v1.39.1, hosts: [${HOSTS}], hops: [${hops.join()}], binaries: ${binaries('v1.39.1')}}`,
  'm.yaml',
);

const AT_37 = ['v1.37.4', 'v1.37.4', 'v1.37.4'];
test.each<
  [string, readonly string[], readonly string[], string | undefined, string, readonly string[]]
>([
  [
    'nothing has begun',
    ['v1.36.3', 'v1.36.3', 'v1.36.3'],
    ['v1.36.3', 'v1.36.3'],
    undefined,
    'v1.37.4',
    ['v1.38.2', 'v1.39.1'],
  ],
  [
    'a patch is missing',
    ['v1.37.1', 'v1.37.1', 'v1.37.1'],
    ['v1.37.1', 'v1.37.1'],
    undefined,
    'v1.37.4',
    ['v1.38.2', 'v1.39.1'],
  ],
  ['a worker is left', AT_37, ['v1.37.4', 'v1.36.3'], undefined, 'v1.37.4', ['v1.38.2', 'v1.39.1']],
  ['the first is done', AT_37, ['v1.37.4', 'v1.37.4'], undefined, 'v1.38.2', ['v1.39.1']],
  [
    'Refit stays at the first hop while the run of this hop has not ended',
    AT_37,
    ['v1.37.4', 'v1.37.4'],
    'v1.37.4',
    'v1.37.4',
    ['v1.38.2', 'v1.39.1'],
  ],
  [
    'all are done',
    ['v1.39.1', 'v1.39.1', 'v1.39.1'],
    ['v1.39.1', 'v1.39.1'],
    undefined,
    'v1.39.1',
    [],
  ],
])('%s', (_name, cp1, w1, open, version, later) => {
  const facts = manifest.hosts.map((host, index) => {
    const [kubeadm, kubelet, server] = index === 0 ? cp1 : w1;
    const image = server === undefined ? '' : `image.kube-apiserver=r/kube-apiserver:${server}`;
    return { host, ...parseFacts(`kubeadm=${kubeadm}\nkubelet=${kubelet}\n${image}`) };
  });
  const progress = { done: new Set<string>(), leaderIsDone: false, isMinor: true };
  const plan =
    open === undefined
      ? undefined
      : newPlan(requestFor({ ...manifest, version: open }, progress), 'sha256:1');
  const found = nextHop(manifest, facts, plan);
  expect([found.manifest.version, found.later]).toEqual([version, later]);
  expect(found.manifest.binaries.kubeadm).toEqual({ path: `/${version.replace('v1.37', '1.37')}` });
});

test('a host with binaries of its own has those of the version that the run goes to', () => {
  const own = '{version: v1.37.4, binaries: {kubelet: {path: /own-37}}}';
  const w1 = `{name: w1, role: worker, binaries: {kubelet: {path: /own-39}}, hops: [${own}]}`;
  const mixed = parseManifest(
    `{version: v1.39.1, hosts: [{name: cp1, role: controlPlane}, ${w1}], hops: [${hops.join()}], binaries: ${binaries('v1.39.1')}}`,
    'm.yaml',
  );
  const binariesAfter = (found: string): unknown[] => {
    const facts = mixed.hosts.map((host) => ({
      host,
      ...parseFacts(`kubeadm=${found}\nkubelet=${found}\n`),
    }));
    const hop = nextHop(mixed, facts, undefined).manifest;
    return [hop.version, ...hop.hosts.map((host) => binariesFor(hop, host).kubelet)];
  };
  const field = 'hosts[w1].binaries';
  const ofAll = { path: '/b' };
  expect(binariesAfter('v1.36.3')).toEqual(['v1.37.4', ofAll, { path: '/own-37', field }]);
  expect(binariesAfter('v1.37.4')).toEqual(['v1.38.2', ofAll, ofAll]);
  expect(binariesAfter('v1.38.2')).toEqual(['v1.39.1', ofAll, { path: '/own-39', field }]);
});

test.each([
  ['v1.38.2', 'hops[0].version: v1.38.2 is not lower than v1.37.4, which comes next'],
  ['v1.40.0', 'hops[0].version: v1.40.0 is not lower than v1.37.4, which comes next'],
])('hops must lead upwards: %s comes first', (version, message) => {
  const list = [version, 'v1.37.4'].map(
    (each) => `{version: ${each}, binaries: ${binaries(each)}}`,
  );
  const text = `{version: v1.39.1, hosts: [${HOSTS}], hops: [${list.join()}], binaries: ${binaries('v1.39.1')}}`;
  expect(() => parseManifest(text, 'm.yaml')).toThrow(`m.yaml: ${message}`);
});

test('no hop lies beyond the version', () => {
  const text = `{version: v1.35.1, hosts: [${HOSTS}], hops: [{version: v1.36.0, binaries: ${binaries('v1.36.0')}}], binaries: ${binaries('v1.35.1')}}`;
  expect(() => parseManifest(text, 'm.yaml')).toThrow(
    'v1.36.0 is not lower than v1.35.1, which comes next',
  );
});

describe('workers that may skip minor versions', () => {
  const minors = (from: number, to: number): string[] =>
    Array.from({ length: to - from + 1 }, (_, index) => `v1.${from + index}.1`);
  const skipping = (from: number, to: number) => {
    const list = minors(from, to - 1).map(
      (version) => `{version: ${version}, binaries: ${binaries(version)}}`,
    );
    const more = `workersSkipMinors: true, hops: [${list.join()}], binaries: ${binaries('v')}`;
    return parseManifest(
      `{version: v1.${to}.1, hosts: [${HOSTS}, {name: w2, role: worker}], ${more}}`,
      'm.yaml',
    );
  };
  const ALL = 'cp1,w1,w2';
  const stay = (version: string): string => `Stays at its version until ${version}: w1, w2`;
  const alone = (version: string): string => `${version} (without workers)`;

  test.each<[string, number, number, readonly number[], readonly unknown[]]>([
    [
      'stay at the first',
      35,
      37,
      [34, 34, 34],
      ['v1.35.1', 'cp1', stay('v1.37.1'), alone('v1.36.1'), 'v1.37.1'],
    ],
    [
      'stay at the second, two behind',
      35,
      37,
      [35, 34, 34],
      ['v1.36.1', 'cp1', stay('v1.37.1'), 'v1.37.1'],
    ],
    ['go straight to the last, three behind', 35, 37, [36, 34, 34], ['v1.37.1', ALL, '']],
    [
      'stay as long as they may',
      34,
      37,
      [34, 33, 33],
      ['v1.35.1', 'cp1', stay('v1.36.1'), 'v1.36.1', 'v1.37.1'],
    ],
    [
      'workers that may skip minor versions upgrade before they are four minor versions behind',
      34,
      37,
      [35, 33, 33],
      ['v1.36.1', ALL, '', 'v1.37.1'],
    ],
    [
      'go before that also where the control plane has it',
      34,
      37,
      [36, 33, 33],
      ['v1.36.1', ALL, '', 'v1.37.1'],
    ],
    ['wait for the last of them', 34, 37, [36, 36, 33], ['v1.36.1', ALL, '', 'v1.37.1']],
    ['go with all once they are there', 34, 37, [36, 36, 36], ['v1.37.1', ALL, '']],
    ['have it all', 35, 37, [37, 37, 37], ['v1.37.1', ALL, '']],
    [
      'do not stay with a kubelet that nobody can read',
      35,
      37,
      [34, 34, 0],
      ['v1.35.1', ALL, '', alone('v1.36.1'), 'v1.37.1'],
    ],
  ])('%s', (_name, from, to, found, expected) => {
    const way = skipping(from, to);
    const hop = nextHop(way, factsOf(way, found), undefined);
    const names = hop.manifest.hosts.map(({ name }) => name).join();
    expect([hop.manifest.version, names, hop.stay, ...hop.later]).toEqual(expected);
  });

  test('where there are none, no hop is without them', () => {
    const all = skipping(35, 37);
    const way = { ...all, hosts: all.hosts.slice(0, 1) };
    const hop = nextHop(way, factsOf(way, [34]), undefined);
    expect([hop.manifest.version, ...hop.later]).toEqual(['v1.35.1', 'v1.36.1', 'v1.37.1']);
  });

  test('those that a run began with stay in it', () => {
    const way = skipping(35, 37);
    const at = { ...way, version: 'v1.35.1' };
    const plan = newPlan(
      requestFor(at, { done: new Set(), leaderIsDone: false, isMinor: true }),
      'sha256:1',
    );
    const { manifest: hop, stay: staying } = nextHop(way, factsOf(way, [34, 34, 34]), plan);
    expect([hop.version, hop.hosts.length, staying]).toEqual(['v1.35.1', 3, '']);
  });
});

/** Returns facts with the minor versions of the hosts. The number 0 stands for a version that cannot be parsed. */
function factsOf({ hosts }: Manifest, minors: readonly number[]): HostFacts[] {
  return hosts.map((host, index) => {
    const version = minors[index] === 0 ? '' : `v1.${minors[index]}.1`;
    const server =
      host.role === 'controlPlane' ? `image.kube-apiserver=r/kube-apiserver:${version}` : '';
    return { host, ...parseFacts(`kubeadm=${version}\nkubelet=${version}\n${server}`) };
  });
}
