/** Proves which of several hops a run goes, by what the hosts have and by a run that is not over. */
import { expect, test } from 'vitest';
import { parseFacts } from '../../kubeadm/probe.ts';
import { nextHop } from './hops.ts';
import { parseManifest } from './manifest.ts';
import { newPlan, requestFor } from './plan-object.ts';

const HOSTS = '{name: cp1, role: controlPlane}, {name: w1, role: worker}';
const binaries = (version: string): string => `{kubeadm: {path: /${version}}, kubelet: {path: /b}}`;
const hops = ['1.37.4', 'v1.38.2'].map((version) => `{version: ${version}, binaries: ${binaries(version)}}`);
const manifest = parseManifest(
  `{version: v1.39.1, hosts: [${HOSTS}], hops: [${hops.join()}], binaries: ${binaries('v1.39.1')}}`,
  'm.yaml',
);

const AT_37 = ['v1.37.4', 'v1.37.4', 'v1.37.4'];
test.each<[string, readonly string[], readonly string[], string | undefined, string, readonly string[]]>([
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
  ['the first is not over', AT_37, ['v1.37.4', 'v1.37.4'], 'v1.37.4', 'v1.37.4', ['v1.38.2', 'v1.39.1']],
  ['all are done', ['v1.39.1', 'v1.39.1', 'v1.39.1'], ['v1.39.1', 'v1.39.1'], undefined, 'v1.39.1', []],
])('%s', (_name, cp1, w1, open, version, later) => {
  const facts = manifest.hosts.map((host, index) => {
    const [kubeadm, kubelet, server] = index === 0 ? cp1 : w1;
    const image = server === undefined ? '' : `image.kube-apiserver=r/kube-apiserver:${server}`;
    return { host, ...parseFacts(`kubeadm=${kubeadm}\nkubelet=${kubelet}\n${image}`) };
  });
  const progress = { done: new Set<string>(), leaderIsDone: false, isMinor: true };
  const plan =
    open === undefined ? undefined : newPlan(requestFor({ ...manifest, version: open }, progress), 'sha256:1');
  const found = nextHop(manifest, facts, plan);
  expect([found.manifest.version, found.later]).toEqual([version, later]);
  expect(found.manifest.binaries.kubeadm).toEqual({ path: `/${version.replace('v1.37', '1.37')}` });
});

test.each([
  ['v1.38.2', 'hops[0].version: v1.38.2 is not lower than v1.37.4, which comes next'],
  ['v1.40.0', 'hops[0].version: v1.40.0 is not lower than v1.37.4, which comes next'],
])('hops must lead upwards: %s comes first', (version, message) => {
  const list = [version, 'v1.37.4'].map((each) => `{version: ${each}, binaries: ${binaries(each)}}`);
  const text = `{version: v1.39.1, hosts: [${HOSTS}], hops: [${list.join()}], binaries: ${binaries('v1.39.1')}}`;
  expect(() => parseManifest(text, 'm.yaml')).toThrow(`m.yaml: ${message}`);
});

test('no hop lies beyond the version', () => {
  const text = `{version: v1.35.1, hosts: [${HOSTS}], hops: [{version: v1.36.0, binaries: ${binaries('v1.36.0')}}], binaries: ${binaries('v1.35.1')}}`;
  expect(() => parseManifest(text, 'm.yaml')).toThrow('v1.36.0 is not lower than v1.35.1, which comes next');
});
