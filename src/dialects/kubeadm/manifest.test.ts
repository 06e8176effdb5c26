/** Owns the table of manifests: what is read, and the one line that says what is wrong where. */
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { parseManifest } from './manifest.ts';

const HASH = '0123456789abcdef'.repeat(4);
const GOOD = {
  version: '1.36.3',
  hosts: [
    { name: 'cp1', role: 'controlPlane' },
    { name: 'w1', role: 'worker', address: '10.0.0.21', port: 2222, user: 'core', identityFile: './key' },
  ],
  binaries: { kubeadm: { path: '/opt/kubeadm' }, kubelet: { url: 'https://example.com/kubelet', sha256: HASH } },
};

test('what is left out, and a version without v', () => {
  expect(parseManifest(stringify(GOOD), 'cluster.yaml')).toEqual({
    ...GOOD,
    version: 'v1.36.3',
    concurrent: 1,
    ssh: {},
  });
});

describe('what is wrong', () => {
  const [cp1, w1] = GOOD.hosts;
  test.each<[string, unknown, string]>([
    ['a field that nobody knows', { ...GOOD, workers: 2 }, 'the manifest: has no member workers, check the spelling'],
    [
      'one of a host',
      { ...GOOD, hosts: [{ ...cp1, adress: 'x' }] },
      'hosts[0]: has no member adress, check the spelling',
    ],
    ['no hosts', { ...GOOD, hosts: undefined }, 'hosts: is missing, expected array'],
    ['a text for a number', { ...GOOD, hosts: [{ ...cp1, port: '22' }] }, 'hosts[0].port: is "22", expected number'],
    [
      'another role',
      { ...GOOD, hosts: [{ ...cp1, role: 'master' }] },
      'hosts[0].role: is "master", expected one of "controlPlane"|"worker"',
    ],
    [
      'a name that no Node can have',
      { ...GOOD, hosts: [{ ...cp1, name: 'CP_1' }] },
      'hosts[0].name: is "CP_1", must be the name of its Node, an RFC 1123 subdomain',
    ],
    ['a version that is none', { ...GOOD, version: '1.36' }, 'version: is "1.36", must be a version such as v1.36.3'],
    ['a host twice', { ...GOOD, hosts: [cp1, cp1] }, 'hosts: cp1 is named twice, expected each host once'],
    ['no control plane', { ...GOOD, hosts: [w1] }, 'hosts: none has the role controlPlane, expected at least one'],
    [
      'a download without a hash',
      { ...GOOD, binaries: { ...GOOD.binaries, kubelet: { url: 'https://example.com/kubelet' } } },
      'binaries.kubelet: is {"url":"https://example.com/kubelet"}, expected path on the host, or url with sha256 (64 hex digits)',
    ],
    [
      'an option that would undo the check of host keys',
      { ...GOOD, ssh: { options: { stricthostkeychecking: 'no' } } },
      'ssh.options: stricthostkeychecking is set by Refit itself, expected other options only',
    ],
    ['nothing', null, 'the manifest: is null, expected object'],
  ])('%s', (_name, manifest, line) => {
    expect(() => parseManifest(stringify(manifest), 'cluster.yaml')).toThrow(`cluster.yaml: ${line}`);
  });

  test('no YAML', () => {
    expect(() => parseManifest('hosts: [', 'cluster.yaml')).toThrow(/^cluster\.yaml: is not YAML: /);
  });
});
