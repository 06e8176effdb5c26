/** Tests the version rules at both sides of each bound, and the sentences of their findings. */
import { expect, test } from 'vitest';
import {
  apply,
  controller,
  etcd,
  host,
  kubelet,
  node,
  said,
  to,
} from '../../test/support/builders/version-facts.ts';
import { parseVersion } from '../util/version.ts';
import { describeFinding } from './findings.ts';
import { nodeFindings, type VersionFacts } from './kubeadm-rules.ts';
import { isNeeded, judgeVersions } from './version-rules.ts';

test.each([
  [['1.36.1'], '1.36.1', false],
  [['v1.36.1'], '1.36.1', false],
  [['1.36.1', '1.36.0'], '1.36.1', true],
  [['1.36.1+k3s1'], '1.36.1+k3s2', true],
])('whether API servers of %j need an upgrade to %s: %s', (found, target, needed) => {
  expect(isNeeded(found, target)).toBe(needed);
});

test('a broken rule about the steps of API servers is told in one sentence with both versions', () => {
  expect(judgeVersions(to(['1.34.9'], '1.36.1'))).toEqual([
    {
      rule: 'R2',
      severity: 'hard',
      message: 'API servers would go from v1.34.9 past 1.35 to v1.36.1',
    },
  ]);
});

const worker = (version: string) => ({ kubelets: [{ name: 'w1', version }] });

test.each([
  ['1.34.3', '1.34.5', ['1.34.5'], 'would be newer than the API servers at v1.34.3'],
  ['1.34.3', '1.35.0', ['1.35.0'], 'would be newer than the API servers at v1.34.3'],
  ['1.35.2', '1.36.0', ['1.34.9', '1.35.1'], 'is newer than an API server at v1.34.9'],
])(
  'to v%s, a kubelet of v%s beside API servers of %j: it %s',
  (target, version, servers, wanted) => {
    const messages = judgeVersions(to(servers, target, { resuming: true, ...worker(version) })).map(
      ({ message }) => message,
    );
    expect(messages).toContain(`kubelet of w1 at v${version} ${wanted}`);
  },
);

/** Cases at both sides of each bound, and cases that no row of version-rules.test.ts has. */
test.each<[string, VersionFacts, string]>([
  [
    'API servers of a candidate, to a release before it',
    to(['1.36.2-rc.1'], '1.36.1'),
    'force R12',
  ],
  ['a release, to its own candidate', to(['1.36.0'], '1.36.0-rc.1'), 'force Ks3 R12'],
  ['a candidate, to its release', to(['1.36.0-rc.1'], '1.36.0'), 'yes'],
  ['a version that is none', to(['latest'], '1.36.0'), 'no Km1'],
  [
    'a kubelet whose version is none',
    to(['1.35'], '1.36.0', { kubelets: [{ version: '?' }] }),
    'warn Km1',
  ],
  ...['fake', 'kwok-v0.7.0', '1.33', ''].map(
    (version) =>
      [
        `a virtual Node with the version "${version}": every other rule is still checked`,
        to(['1.34.0'], '1.36.0', { kubelets: [{ name: 'virtual', version }] }),
        'no R2',
      ] as [string, VersionFacts, string],
  ),
  [
    'a virtual Node, where nothing else is wrong: a warning',
    to(['1.35.0'], '1.36.0', { kubelets: [{ name: 'virtual', version: 'fake' }] }),
    'warn Km1',
  ],
  [
    'a kubelet that shall be upgraded, and whose version is none',
    to(['1.35.0'], '1.36.0', { kubelets: [{ name: 'w1', version: 'fake', target: '1.36.0' }] }),
    'no Km1',
  ],
  [
    'API servers that differ, and nothing is under way',
    to(['1.36.0', '1.36.1'], '1.36.2'),
    'force F7',
  ],
  [
    'API servers that differ, in a run that is resumed',
    to(['1.36.0', '1.36.1'], '1.36.2', { resuming: true }),
    'yes',
  ],
  ['the oldest that is maintained', to(['1.34.0'], '1.34.1', { oldestMaintained: 34 }), 'yes'],
  [
    'a leap of a worker that may skip',
    kubelet('1.33', ['1.36'], { target: '1.36', drained: true, skips: true }),
    'yes',
  ],
  [
    'a controller one behind the target',
    { ...controller('kube-scheduler', '1.35', ['1.35']), target: '1.36.0' },
    'yes',
  ],
  ['apply without the version of the cluster', apply('1.36.1', '', '1.36.1'), 'no Km1'],
  ['an older kubeadm for a candidate', apply('1.36.0-rc.0', '1.35.4', '1.36.0-rc.1'), 'force Ks3'],
  ['a node at the version of the cluster', node('1.36.1', { cluster: '1.36.0' }), 'yes'],
  ['etcd that is newer already', etcd(['3.6.9'], '3.6.8'), 'yes'],
  ['etcd whose version is none', etcd(['?'], '3.6.8'), 'force etcd'],
  ['etcd just as it must be', etcd(['3.5.20'], '3.6.8'), 'warn etcd'],
  ['etcd before 3.7', etcd(['3.6.10'], '3.7.0'), 'warn etcd'],
  ['etcd as advised before 3.7', etcd(['3.6.11'], '3.7.0'), 'yes'],
  ['cgroup v1 before it is refused', host('1.34', { cgroup: 1 }), 'yes'],
  ['cgroup v1 that is allowed', host('1.35', { cgroup: 1, allowsCgroupV1: true }), 'warn cgroup'],
  ['cgroup v2', host('1.36', { cgroup: 2 }), 'yes'],
  ['containerd 1.7 for 1.34', host('1.34', { containerd: '1.7.27' }), 'yes'],
  ['containerd 2 for 1.35', host('1.35', { containerd: '2.0.0' }), 'yes'],
  ['containerd 2 for 1.36', host('1.36', { containerd: '2.1.4' }), 'yes'],
  ['containerd 1.7 for 1.37', host('1.37', { containerd: '1.7.29' }), 'warn containerd'],
  ['containerd 1.7 for 1.38', host('1.38', { containerd: '1.7.29' }), 'no containerd'],
  [
    'containerd that cannot be read for 1.35',
    host('1.35', { containerd: 'v2?' }),
    'warn containerd',
  ],
  ['containerd that cannot be read for 1.38', host('1.38', { containerd: '?' }), 'no containerd'],
  [
    'an upgrade to the first minor version that Refit does not know is refused unless forced',
    to(['1.37.0'], '1.38.0'),
    'force R14',
  ],
  ['a kernel that cannot be read', host('1.33', { kernel: '?' }), 'no kernel'],
  ['cgroups that cannot be read', host('1.35', { cgroup: 'unknown' }), 'no cgroup'],
  ['cgroups that cannot be read, before they count', host('1.34', { cgroup: '?' }), 'yes'],
  [
    'an old kernel, where kubeadm ignores all',
    host('1.33', { kernel: '4.18', ignores: ['all'] }),
    'warn kernel',
  ],
  [
    'an old kernel, where kubeadm ignores another check',
    host('1.33', { kernel: '4.18', ignores: ['Swap'] }),
    'no kernel',
  ],
  ['an old kernel, of which kubeadm only warns', host('1.34', { kernel: '4.18' }), 'warn kernel'],
  ['the oldest kernel', host('1.33', { kernel: '4.19' }), 'yes'],
  ['an old kernel of a version whose facts are not known', host('1.32', { kernel: '4.18' }), 'yes'],
  ['a kernel between two that are supported', host('1.36', { kernel: '5.14' }), 'warn kernel'],
  ['a kernel of another major version', host('1.36', { kernel: '5.4' }), 'yes'],
  ['a kernel of an earlier one', host('1.33', { kernel: '3.20' }), 'no kernel'],
])('%s', (_name, facts, wanted) => {
  expect(said(facts)).toBe(wanted);
});

test.each([
  [['1.34.9', '1.35.1'], '1.36.0', '1.35.2'],
  [['1.34.9'], '1.35.0', '1.36.2'],
])(
  'API servers of %j to %s, a kubelet of %s: nothing is said twice',
  (servers, target, version) => {
    const messages = judgeVersions(to(servers, target, { resuming: true, ...worker(version) })).map(
      ({ message }) => message,
    );
    expect(messages).toEqual([...new Set(messages)]);
    expect(messages).toContain(
      `kubelet of w1 at v${version} is newer than an API server at v${servers[0]}`,
    );
  },
);

test('a rule about a host names the check of kubeadm whose name lifts it, and a lifted one says so', () => {
  const messagesOf = (minor: number, facts: NonNullable<VersionFacts['node']>): string[] =>
    [...nodeFindings(facts, parseVersion(`v1.${minor}.0`))].map(
      (finding) => `${finding.severity} ${describeFinding(finding)}`,
    );
  const old = { kernel: '4.18' };
  expect(messagesOf(33, old)).toEqual([
    'hard Linux 4.18 is not among the kernels that kubeadm 1.33 supports; ignorePreflightErrors: [SystemVerification] allows this',
  ]);
  expect(messagesOf(33, { ...old, ignores: ['SystemVerification'] })).toEqual([
    'warn Linux 4.18 is not among the kernels that kubeadm 1.33 supports; ignorePreflightErrors allows this',
  ]);
  expect(messagesOf(38, { containerd: '1.7.29' })).toEqual([
    'hard containerd 1.7.29 is too old for 1.38; ignorePreflightErrors: [ContainerRuntimeVersion] allows this',
  ]);
  expect(messagesOf(38, { containerd: '1.7.29', ignores: ['containerruntimeversion'] })).toEqual([
    'warn containerd 1.7.29 is too old for 1.38; ignorePreflightErrors allows this',
  ]);
});

test('a Node whose version is none is named', () => {
  const kubelets = ['fake', 'v1.19.10-vk-azure', ''].map((version, index) => ({
    name: `n${index}`,
    version,
  }));
  const told = judgeVersions({ apiServers: ['v1.21.0'], kubelets });
  expect(told.map(({ message }) => message)).toEqual([
    'kubelet of n0: "fake" is not a version, so no rule of versions is checked for it',
    'kubelet of n2 reports no version, so no rule of versions is checked for it',
  ]);
});
