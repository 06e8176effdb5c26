/** Proves what the report of an upgrade contains, in the form for programs and in the form for people. */
import { expect, test } from 'vitest';
import { warn } from '../../../versions/findings.ts';
import type { HostFacts } from '../host/probe.ts';
import { type Report, reportPatch } from '../plan/kubeadm-signal.ts';
import type { Survey } from '../plan/preflight.ts';
import { markdownOf, reportOf } from './report.ts';

const OLD = 'v1.36.2';
const NEW = 'v1.36.3';

function facts(name: string, version: string): HostFacts {
  const role = name.startsWith('cp') ? 'controlPlane' : 'worker';
  return {
    host: { name, role },
    kubeadm: version,
    kubelet: version,
    ground: {},
    problems: [],
    busy: [],
    apiPort: undefined,
    staticPods: role === 'controlPlane' ? { 'kube-apiserver': version } : {},
    missing: [],
    certificates: [],
    etcd: undefined,
  };
}

function node(name: string, report: Partial<Report>) {
  const spent = { Stage: 1500, Kubeadm: 90_000 };
  const whole = {
    rollout: 'r',
    target: 't',
    attempt: '2026-11-21T08:00:10Z',
    state: 'finished',
    step: 'Verify',
    since: '',
    spent,
    ...report,
  };
  const { metadata } = reportPatch(whole as Report) as { metadata: object };
  return { metadata: { name, ...metadata } };
}

const request = {
  version: NEW,
  concurrent: 1,
  certificates: [],
  leader: ['cp1'],
  followers: [],
  kubelets: [],
  workers: ['w1', 'w2'],
};
const ended = {
  survey: {
    hosts: [facts('cp1', OLD), facts('w1', OLD), facts('w2', OLD), facts('w3', NEW)],
  } as unknown as Survey,
  assessment: {
    request,
    resumes: false,
    start: '',
    digest: 'sha256:1',
    continues: false,
    toRoll: [],
    toApply: [],
    findings: [warn('drain', 'w1 cannot be drained now')],
  },
  outcome: 'failed' as const,
  began: '2026-11-21T08:00:00Z',
  ended: '2026-11-21T08:03:20Z',
  state: {
    facts: [facts('cp1', NEW), facts('w1', OLD), facts('w2', OLD), facts('w3', NEW)],
    nodes: [node('cp1', {}), node('w1', { state: 'failed', message: 'step kubeadm | failed' })],
    checks: new Map([['w1', [{ component: 'kubelet', found: OLD, cure: 'run it again' }]]]),
  },
};
const report = reportOf(ended);

test('the report lists each host with its command, its versions before and after, and the time per step', () => {
  expect(report.hosts.map(({ name, command, state }) => [name, command, state])).toEqual([
    ['cp1', `kubeadm upgrade apply ${NEW}`, 'finished'],
    ['w1', 'kubeadm upgrade node', 'failed'],
    ['w2', 'kubeadm upgrade node', 'not started'],
    ['w3', undefined, 'already there'],
  ]);
  expect(report.hosts[0]).toMatchObject({
    before: { kubelet: OLD, 'kube-apiserver': OLD },
    after: { kubelet: NEW, 'kube-apiserver': NEW },
    spent: { Stage: 1500, Kubeadm: 90_000 },
  });
  expect(report).toMatchObject({
    version: NEW,
    outcome: 'failed',
    checks: [{ of: 'w1', component: 'kubelet' }],
  });
});

test('a host that only gets new certificates', () => {
  const renewal = { ...request, certificates: ['w3'] };
  const { hosts } = reportOf({ ...ended, assessment: { ...ended.assessment, request: renewal } });
  expect(hosts.map(({ name, command }) => [name, command]).at(-1)).toEqual([
    'w3',
    'kubeadm certs renew',
  ]);
});

test('where the API server does not say what was done, the report does not guess', () => {
  const { hosts } = reportOf({
    ...ended,
    state: { facts: [], nodes: undefined, checks: new Map() },
  });
  expect(hosts.map(({ state }) => state)).toEqual([
    'unknown',
    'unknown',
    'unknown',
    'already there',
  ]);
});

test('as Markdown, in which foreign text stays in its cell', () => {
  const lines = markdownOf(report).split('\n');
  expect(lines).toContain(`# Upgrade to ${NEW}: failed`);
  const back = { ...ended.assessment.request, back: true as const };
  const ofWayBack = reportOf({ ...ended, assessment: { ...ended.assessment, request: back } });
  expect(markdownOf(ofWayBack).split('\n')[0]).toBe(`# Roll-back to ${NEW}: failed`);
  expect(lines).toContain(
    'From 2026-11-21T08:00:00Z to 2026-11-21T08:03:20Z, 3 min 20 s. Digest of the plan: sha256:1.',
  );
  const versions = `kubeadm ${OLD} → ${NEW}, kubelet ${OLD} → ${NEW}, kube-apiserver ${OLD} → ${NEW}`;
  expect(lines).toContain(
    `| cp1 | controlPlane | finished | ${versions} | Stage 2 s, Kubeadm 1 min 30 s |`,
  );
  expect(lines.find((line) => line.startsWith('| w1 | worker'))).toContain(
    'failed: step kubeadm \\| failed',
  );
  expect(lines).toContain(`| w1 | kubelet | ${OLD} | run it again |`);
  expect(lines).toContain('| warn | drain | w1 cannot be drained now |');
});

test('as Markdown, in which no text of a host is a link, HTML, a heading or a row of its own', () => {
  const said = '<script>a</script> [a](https://evil.example)\n# b\n| w9 | worker |';
  const hosts = report.hosts.map((host) => ({ ...host, name: said, message: said }));
  const checks = [{ of: said, component: said, found: said, cure: said }];
  const text = markdownOf({ ...report, hosts, checks, version: said, digest: said });
  expect(text).not.toMatch(/<script|https:\/\/|\n# b|(?<!\\)\[a|^\| w9/m);
});

test('what an upgrade of last month has left on a Node is not said of this one', () => {
  const left = node('w2', { rollout: 'last-month', attempt: '2026-10-21T08:00:00Z' });
  const { hosts } = reportOf({ ...ended, state: { ...ended.state, nodes: [left] } });
  expect([hosts[2]?.state, hosts[2]?.spent]).toEqual(['not started', {}]);
});

test.each([
  ['leader/cp1', 'finished', 'kubelet not started'],
  ['leader/cp1', 'failed', 'failed'],
  ['kubelets/cp1', 'finished', 'finished'],
] as const)('of a host whose kubelet comes later, %s that is %s: %s', (target, state, told) => {
  const nodes = [node('cp1', { target, state })];
  const assessment = { ...ended.assessment, request: { ...request, kubelets: ['cp1'] } };
  const { hosts } = reportOf({ ...ended, assessment, state: { ...ended.state, nodes } });
  expect(hosts[0]?.state).toBe(told);
});
