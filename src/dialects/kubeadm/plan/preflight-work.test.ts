/** Tests which work an upgrade has to do, and how an interrupted upgrade continues. */
import { describe, expect, test } from 'vitest';
import { stageWith } from '../../../../test/support/kubeadm/survey.ts';
import {
  facts,
  fresh,
  MINOR,
  manifest,
  minor,
  NAMES,
  NEW,
  node,
  OLD,
  REQUEST,
  undrained,
} from '../../../../test/support/kubeadm/upgrade-surveys.ts';
import type { ConfigMap } from '../../../kube/resources.ts';
import { hard, warn } from '../../../versions/findings.ts';
import type { HostFacts } from '../host/probe.ts';
import { newPlan, type Request } from './plan-object.ts';
import { assessHosts, type Survey } from './preflight.ts';

const RENEWING = { toRenew: ['/etc/kubernetes/pki/apiserver.crt ends on 2026-12-01'] };

function planIn(phase: string): ConfigMap {
  const plan = newPlan(REQUEST, 'sha256:1');
  return {
    ...plan,
    data: { ...plan.data, rollout: JSON.stringify({ phase, blocked: false, stages: [] }) },
  };
}

function upgraded(names: readonly string[], more: Partial<HostFacts> = {}): Partial<Survey> {
  const hosts = names.map((name) => facts(name, NEW, more));
  return { hosts, nodes: names.map((name) => node(name, NEW)), clusterVersion: NEW };
}

const alone = { ...manifest, hosts: manifest.hosts.filter(({ name }) => name !== 'cp2') };

/** Returns a failed plan that renews the certificates of `cp1` and `cp2`, with these states of the hosts. */
function renewalWith(...states: readonly string[]): ConfigMap {
  const targets = Object.fromEntries(states.map((state, at) => [`cp${at + 1}`, state]));
  const plan = newPlan({ ...REQUEST, certificates: ['cp1', 'cp2'] }, 'sha256:1');
  const rollout = { phase: 'failed', blocked: false, stages: [stageWith('certificates', targets)] };
  return { ...plan, data: { ...plan.data, rollout: JSON.stringify(rollout) } };
}

describe('what is to be done', () => {
  test.each<[string, Partial<Survey>, Partial<Request>, boolean]>([
    ['everything: the first control-plane host leads', {}, {}, false],
    [
      'what an earlier rollout has done is left out, and a leader that is done stays the leader',
      {
        hosts: [facts('cp1', NEW), facts('cp2'), facts('w1')],
        nodes: [node('cp1', NEW), node('cp2'), node('w1')],
        clusterVersion: NEW,
        plan: planIn('failed'),
      },
      { leader: [], followers: ['cp2'] },
      false,
    ],
    [
      'a leader that is half done leads again',
      {
        hosts: [facts('cp1', NEW, { kubelet: OLD }), facts('cp2'), facts('w1')],
        clusterVersion: NEW,
        plan: planIn('failed'),
      },
      {},
      false,
    ],
    ['nothing', upgraded(NAMES), { leader: [], followers: [], workers: [] }, false],
    [
      'only what kubeadm keeps in the cluster, as after a restore of etcd: its leader leads again',
      { hosts: NAMES.map((name) => facts(name, NEW)), nodes: NAMES.map((name) => node(name, NEW)) },
      { followers: [], workers: [] },
      false,
    ],
    [
      'what has begun goes on as it was asked for',
      { hosts: [facts('cp1', NEW), facts('cp2'), facts('w1')], plan: planIn('running') },
      {},
      true,
    ],
    ['what was asked for and never begun, too', { plan: newPlan(REQUEST, 'sha256:1') }, {}, true],
    [
      'a minor version: kubelets of the control plane come after its API servers',
      minor,
      { version: MINOR, kubelets: ['cp1', 'cp2'] },
      false,
    ],
    [
      'a minor version with one API server, whose kubelet can meet no other',
      {
        manifest: {
          ...manifest,
          version: MINOR,
          hosts: manifest.hosts.filter(({ name }) => name !== 'cp2'),
        },
        hosts: [facts('cp1'), facts('w1')],
        nodes: [node('cp1'), node('w1')],
      },
      { version: MINOR, followers: [] },
      false,
    ],
    [
      'a minor version that every API server has already',
      {
        ...minor,
        hosts: [
          facts('cp1', MINOR, { kubelet: OLD }),
          facts('cp2', MINOR, { kubelet: OLD }),
          facts('w1'),
        ],
        clusterVersion: MINOR,
      },
      { version: MINOR },
      false,
    ],
    ['a patch where nodes are not drained', { policy: undrained }, {}, false],
    [
      'certificates that end soon, of hosts that are not upgraded: an upgrade renews the others',
      {
        hosts: [facts('cp1', NEW, RENEWING), facts('cp2', OLD, RENEWING), facts('w1')],
        nodes: [node('cp1', NEW), node('cp2'), node('w1')],
        clusterVersion: NEW,
        plan: planIn('failed'),
      },
      { certificates: ['cp1'], leader: [], followers: ['cp2'] },
      false,
    ],
    [
      'certificates that a run before has renewed, where not everything has loaded them',
      { ...upgraded(NAMES), plan: renewalWith('done', 'failed') },
      { certificates: ['cp2'], leader: [], followers: [], workers: [] },
      false,
    ],
    [
      'no certificates, where the manifest no longer allows what a run before has begun',
      { ...upgraded(NAMES, { toRenew: undefined }), plan: renewalWith('done', 'failed') },
      { certificates: [], leader: [], followers: [], workers: [] },
      false,
    ],
    [
      'no certificates of a host that the manifest no longer lists, though a run before has begun with it',
      { manifest: alone, ...upgraded(['cp1', 'w1']), plan: renewalWith('failed', 'failed') },
      { certificates: ['cp1'], leader: [], followers: [], workers: [] },
      false,
    ],
    [
      'certificates alone, though binaries of the upgrade before are gone',
      {
        hosts: [
          facts('cp1', NEW, { ...RENEWING, problems: [hard('host', 'no file')] }),
          facts('cp2', NEW),
          facts('w1', NEW),
        ],
        nodes: NAMES.map((name) => node(name, NEW)),
        clusterVersion: NEW,
      },
      { certificates: ['cp1'], leader: [], followers: [], workers: [] },
      false,
    ],
  ])('%s', (_name, change, request, resumes) => {
    const assessment = assessHosts({ ...fresh, ...change });
    expect(assessment).toMatchObject({
      request: { ...REQUEST, ...request },
      resumes,
      findings: [],
    });
  });
});

test('a run that continues shows what hosts warn of, and refuses nothing that a half-done upgrade explains', () => {
  const problems = [hard('host', 'no room'), warn('host', 'a step of an earlier run is at work')];
  const hosts = [facts('cp1'), facts('cp2', OLD, { problems }), facts('w1')];
  const { findings } = assessHosts({ ...fresh, hosts, plan: planIn('running') });
  expect(findings).toEqual([warn('host', 'cp2: a step of an earlier run is at work')]);
});

test('a control plane that a person has upgraded in part can be continued, once that is allowed', () => {
  const survey = {
    ...fresh,
    hosts: [facts('cp1', MINOR), facts('cp2'), facts('w1')],
    nodes: [node('cp1', MINOR), node('cp2'), node('w1')],
    clusterVersion: MINOR,
  };
  const target = { ...manifest, version: MINOR };
  const refused = assessHosts({ ...survey, manifest: target }).findings;
  expect(refused.filter(({ severity }) => severity !== 'warn').map(({ rule }) => rule)).toEqual([
    'F7',
  ]);
  const { findings, request } = assessHosts({ ...survey, manifest: { ...target, allow: ['F7'] } });
  expect(findings.map(({ rule, severity }) => `${severity} ${rule}`)).toEqual([
    'warn F7',
    'warn R3',
  ]);
  expect(request).toMatchObject({ leader: [], followers: ['cp2'], workers: ['w1'] });
});

test('a webhook that nobody answers for matters only where something is to be done', () => {
  const finding = warn('webhook', 'nobody answers');
  const webhooks = [{ finding }];
  expect(assessHosts({ ...fresh, webhooks }).findings).toContainEqual(finding);
  const there = {
    hosts: NAMES.map((name) => facts(name, NEW)),
    nodes: NAMES.map((name) => node(name, NEW)),
  };
  expect(assessHosts({ ...fresh, ...there, clusterVersion: NEW, webhooks }).findings).toEqual([]);
});

test('once its hosts are done, a plan keeps its digest: the same command goes on with MachineDeployments', () => {
  const pools = { pools: [], rollsPools: true };
  const whole = assessHosts({ ...fresh, ...pools });
  const { data, ...plan } = newPlan(whole.request, whole.start);
  const ended = {
    ...plan,
    data: { ...data, rollout: JSON.stringify({ phase: 'done', blocked: false, stages: [] }) },
  };
  const there = {
    hosts: NAMES.map((name) => facts(name, NEW)),
    nodes: NAMES.map((name) => node(name, NEW)),
  };
  const { request, digest } = assessHosts({
    ...fresh,
    ...there,
    ...pools,
    clusterVersion: NEW,
    plan: ended,
  });
  expect([request.leader, request.workers, digest]).toEqual([[], [], whole.digest]);
});

test('an upgrade of hosts is followed by all addons, since kubeadm overwrites; else by those that differ', () => {
  const plan = {
    name: 'dns',
    objects: [],
    force: false,
    changes: [],
    problems: [],
    notes: ['dns: it stays'],
  };
  const addons = [plan, { ...plan, name: 'net', changes: ['changed: DaemonSet a'] }];
  const done = {
    hosts: NAMES.map((name) => facts(name, NEW)),
    nodes: NAMES.map((name) => node(name, NEW)),
  };
  const namesOf = (more: Partial<Survey>) =>
    assessHosts({ ...fresh, addons, ...more }).toApply.map(({ name }) => name);
  expect([namesOf({}), namesOf({ ...done, clusterVersion: NEW })]).toEqual([
    ['dns', 'net'],
    ['net'],
  ]);
  const { findings } = assessHosts({ ...fresh, addons: [plan] });
  expect(findings).toContainEqual(
    expect.objectContaining({ severity: 'warn', message: 'dns: it stays' }),
  );
});
