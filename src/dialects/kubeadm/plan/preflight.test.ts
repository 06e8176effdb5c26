/** Proves what preflight plans and refuses, for a cluster of two control-plane hosts and a worker. */
import { describe, expect, test } from 'vitest';
import { ORDINARY, stageWith } from '../../../../test/support/kubeadm/survey.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import type { ConfigMap, Node } from '../../../kube/resources.ts';
import { describeFinding, hard, warn } from '../../../versions/findings.ts';
import { CONTROL_PLANE } from '../../shared/node-endpoints.ts';
import type { HostFacts } from '../host/probe.ts';
import { type Manifest, parseManifest } from './manifest.ts';
import { newPlan, type Request } from './plan-object.ts';
import { assess, type Survey } from './preflight.ts';

const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
const KUBEONE = 'kubeone.io/upgrade-in-progress';
const REQUEST: Request = {
  version: NEW,
  concurrent: 1,
  certificates: [],
  leader: ['cp1'],
  followers: ['cp2'],
  kubelets: [],
  workers: ['w1'],
};
const manifest = parseManifest(
  `version: ${NEW}
hosts: [{ name: cp1, role: controlPlane }, { name: cp2, role: controlPlane }, { name: w1, role: worker }]
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`,
  'cluster.yaml',
);

function node(name: string, version = OLD, ready = 'True'): Node {
  return {
    metadata: { name, labels: name.startsWith('cp') ? { [CONTROL_PLANE]: '' } : {} },
    status: {
      nodeInfo: { kubeletVersion: version },
      conditions: [{ type: 'Ready', status: ready as 'True' }],
    },
  };
}

function marked(name: string): Node {
  const { metadata, ...rest } = node(name);
  return { ...rest, metadata: { ...metadata, labels: { ...metadata.labels, [KUBEONE]: '' } } };
}

function facts(name: string, version = OLD, more: Partial<HostFacts> = {}): HostFacts {
  const host = manifest.hosts.find((each) => each.name === name) ?? { name, role: 'worker' };
  const pods = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((pod) => [
    pod,
    version,
  ]);
  const staticPods = host.role === 'controlPlane' ? Object.fromEntries(pods) : {};
  return {
    host,
    kubeadm: version,
    kubelet: version,
    ground: {},
    staticPods,
    missing: [],
    ...SOUND,
    ...more,
  };
}

const RUNTIME = { containerd: { path: '/c' }, 'containerd-shim-runc-v2': { path: '/s' } };
const SOUND = {
  problems: [],
  busy: [],
  apiPort: undefined,
  certificates: [],
  toRenew: [],
  etcd: undefined,
};
const RENEWING = { toRenew: ['/etc/kubernetes/pki/apiserver.crt ends on 2026-12-01'] };
const OF_W2 = { file: '/k.pem', isAuthority: false, until: 0, soon: 0, nodeName: 'w2' };
const NAMES = ['cp1', 'cp2', 'w1'];
const fresh: Survey = {
  manifest,
  hosts: NAMES.map((name) => facts(name)),
  nodes: NAMES.map((name) => node(name)),
  clusterVersion: OLD,
  ...ORDINARY,
};
const MINOR = 'v1.37.0';
const minor: Partial<Survey> = { manifest: { ...manifest, version: MINOR } };
const undrained: RolloutPolicy = {
  ...DEFAULT_POLICY,
  drain: { ...DEFAULT_POLICY.drain, enabled: false },
};

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

/** That of `cp1` and `cp2` has failed. */
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
    const assessment = assess({ ...fresh, ...change });
    expect(assessment).toMatchObject({
      request: { ...REQUEST, ...request },
      resumes,
      findings: [],
    });
  });
});

describe('what is refused', () => {
  test.each<[string, Partial<Survey>, string[]]>([
    [
      'F1: a control-plane host that the manifest lacks',
      { nodes: [...fresh.nodes, node('cp3')] },
      ['F1 the manifest does not list all control-plane hosts; add cp3'],
    ],
    [
      'F2: a host without a Node',
      { nodes: [node('cp1'), node('cp2')] },
      [
        'F2 host w1: the cluster has no Node of this name; correct the name, or take the host out of the manifest',
      ],
    ],
    [
      'F2: a worker that is called a control-plane host',
      { nodes: [node('cp1'), { ...node('cp2'), metadata: { name: 'cp2' } }, node('w1')] },
      [
        `F2 host cp2 has role controlPlane, but its Node lacks the label ${CONTROL_PLANE}; correct the role`,
      ],
    ],
    [
      'F2: an address that leads to another host',
      { hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { certificates: [OF_W2] })] },
      [
        "F2 host w1: its address leads to the host of Node w2, as its kubelet's certificate says; correct the address",
      ],
    ],
    [
      'F3: a worker that is not Ready',
      { nodes: [node('cp1'), node('cp2'), node('w1', OLD, 'False')] },
      ['F3 node w1 is not Ready'],
    ],
    [
      'F4: an upgrade to another version has begun',
      { plan: newPlan({ ...REQUEST, version: 'v1.36.4' }, 'sha256:1') },
      [
        'F4 an upgrade to v1.36.4 is in progress (ConfigMap kube-system/refit-kubeadm); finish it with its own manifest first',
      ],
    ],
    [
      'F4: a host of the upgrade that has begun is gone from the manifest',
      {
        plan: newPlan({ ...REQUEST, workers: ['w1', 'w2'] }, 'sha256:1'),
        nodes: [...fresh.nodes, node('w2')],
      },
      ['F4 the upgrade in progress needs hosts that the manifest no longer lists; add w2 again'],
    ],
    [
      'F4: KubeOne is at work',
      { nodes: [node('cp1'), marked('cp2'), node('w1')] },
      [`F4 a KubeOne upgrade is in progress on cp2; finish it, then remove the label ${KUBEONE}`],
    ],
    [
      'F4: KubeOne is at work on a worker, where it does not look itself',
      { nodes: [node('cp1'), node('cp2'), marked('w1')] },
      [`F4 a KubeOne upgrade is in progress on w1; finish it, then remove the label ${KUBEONE}`],
    ],
    [
      'R2: a skipped minor version is one finding',
      { manifest: { ...manifest, version: 'v1.39.1' } },
      ['R2 API servers are at v1.36.2: go to v1.37 first, then to v1.39.1'],
    ],
    [
      'R12: a patch back is one finding, also amid an upgrade',
      { hosts: [facts('cp1', 'v1.36.4'), facts('cp2'), facts('w1')] },
      [
        'R12 API servers are at v1.36.4: Refit does not go back to v1.36.3; set version to v1.36.4 or later',
      ],
    ],
    [
      'R12: a minor version back, too',
      { manifest: { ...manifest, version: 'v1.35.9' } },
      [
        'R12 API servers are at v1.36.2: Refit does not go back to v1.35.9; set version to v1.36.2 or later',
      ],
    ],
    [
      'R9: a minor version where nodes are not drained',
      { ...minor, policy: undrained },
      NAMES.map(
        (name) =>
          `R9 the node of kubelet of ${name} must be drained before its minor version changes`,
      ),
    ],
    [
      'F7: API servers differ, and nobody knows why',
      { hosts: [facts('cp1', NEW), facts('cp2'), facts('w1')] },
      ['F7 API servers differ, from v1.36.2 to v1.36.3, and no upgrade of this plan is under way'],
    ],
    [
      'F11: no kubeadm',
      { hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { kubeadm: undefined })] },
      ['F11 w1: cannot read the version of kubeadm; check that it is installed'],
    ],
    [
      'F11: an image without a tag',
      {
        hosts: [
          facts('cp1', OLD, {
            staticPods: { ...facts('cp1').staticPods, 'kube-scheduler': undefined },
          }),
          facts('cp2'),
          facts('w1'),
        ],
      },
      [
        'F11 cp1: found no static pod manifest with a version for kube-scheduler; restore it in /etc/kubernetes/manifests on the host',
      ],
    ],
    [
      'Km1: nobody knows the version of the cluster',
      { clusterVersion: undefined },
      ['Km1 the version of the cluster cannot be read'],
    ],
    [
      'what a kubelet of the target demands, each host by name',
      {
        hosts: [
          facts('cp1'),
          facts('cp2'),
          facts('w1', OLD, { ground: { cgroup: 1, containerd: '1.7.27', kernel: '4.18' } }),
        ],
      },
      [
        'cgroup w1: the kubelet of 1.36 refuses cgroup v1',
        'containerd w1: containerd 1.7.27: 1.37 is the last with containerd 1.x',
        'kernel w1: Linux 4.18 is too old for 1.36, which needs 4.19',
      ],
    ],
    [
      'a lower version of containerd, which counts for no host that gets another one',
      {
        manifest: { ...manifest, containerd: { version: 'v2.3.3', binaries: RUNTIME } },
        hosts: [
          facts('cp1', OLD, { ground: { containerd: '2.3.3' } }),
          facts('cp2', OLD, { ground: { containerd: '2.4.0' } }),
          facts('w1', OLD, { ground: { containerd: '1.7.27' } }),
        ],
      },
      [
        'containerd cp2: containerd is at v2.4.0: Refit does not go back to v2.3.3; set containerd.version to v2.4.0 or later',
      ],
    ],
    [
      'a lower version of containerd on a host that is done: nothing',
      {
        manifest: { ...manifest, containerd: { version: 'v2.3.3', binaries: RUNTIME } },
        clusterVersion: NEW,
        hosts: [
          facts('cp1', NEW, { ground: { containerd: '2.4.0' } }),
          facts('cp2', NEW),
          facts('w1'),
        ],
        nodes: [node('cp1', NEW), node('cp2', NEW), node('w1')],
      },
      [],
    ],
    [
      'host: what the upgrade would stumble over, on hosts that it is about',
      {
        hosts: [
          facts('cp1', NEW, { problems: [hard('host', 'no file')] }),
          facts('cp2', NEW),
          facts('w1', OLD, { problems: [hard('host', 'no file')] }),
        ],
        nodes: [node('cp1', NEW), node('cp2', NEW), node('w1')],
        clusterVersion: NEW,
      },
      ['host w1: no file'],
    ],
    [
      'etcd: a member that cannot go where kubeadm brings it',
      {
        hosts: [
          facts('cp1', OLD, { staticPods: { ...facts('cp1').staticPods, etcd: '3.5.19-0' } }),
          facts('cp2', OLD, { staticPods: { ...facts('cp2').staticPods, etcd: '3.6.4-0' } }),
          facts('w1'),
        ],
      },
      ['etcd etcd 3.5.19-0 to 3.6.4: every member must be at 3.5.20 or later'],
    ],
    [
      'Kd: a host that missed a minor version',
      { hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { kubeadm: 'v1.34.1' })] },
      ['Kd w1: the node was last managed by kubeadm 1.34: 1.36 is more than one minor version on'],
    ],
    [
      'R10: a kubelet that is in no manifest',
      { nodes: [...fresh.nodes, node('dynamic', 'v1.32.0')] },
      [
        'R3 kubelet of dynamic at v1.32.0 is more than 3 minor versions behind an API server at v1.36.2',
        'R10 kubelet of dynamic at v1.32.0 would be 4 minor versions behind v1.36.3 (R3); upgrade it first',
      ],
    ],
  ])('%s', (_name, change, wanted) => {
    const { findings } = assess({ ...fresh, ...change });
    const refusals = findings.filter(({ severity }) => severity !== 'warn').map(describeFinding);
    const remedy = /; nothing lifts this: \w|; \w[^;]*; nothing lifts this$|[^;] lifts this$/;
    for (const told of refusals) expect(told).toMatch(remedy);
    expect(findings.map(({ rule, message }) => `${rule} ${message}`)).toEqual(wanted);
  });
});

describe('a worker two minor versions behind', () => {
  const hosts = [facts('cp1', NEW), facts('cp2', NEW), facts('w1', 'v1.34.1')];
  const nodes = [node('cp1', NEW), node('cp2', NEW), node('w1', 'v1.34.1')];
  const rules = (more: Partial<Manifest>, change: Partial<Survey> = {}): string[] => {
    const survey = { ...fresh, hosts, nodes, clusterVersion: NEW, ...change };
    return assess({ ...survey, manifest: { ...manifest, ...more } }).findings.map(
      ({ rule }) => rule,
    );
  };

  test('is refused, unless workers may skip minor versions', () => {
    expect([rules({}), rules({ workersSkipMinors: true })]).toEqual([['R13', 'Kd'], []]);
  });

  test('is drained all the same', () => {
    expect(rules({ workersSkipMinors: true }, { policy: undrained })).toEqual(['R9']);
  });

  test('stays in the way of API servers that would be four ahead', () => {
    const far = [...nodes.slice(0, 2), node('w1', 'v1.33.1')];
    expect(rules({ workersSkipMinors: true, version: MINOR }, { nodes: far })).toEqual(['R10']);
  });

  test('is no reason for a control-plane host to skip one', () => {
    const late = [
      facts('cp1', NEW),
      facts('cp2', NEW, { kubelet: 'v1.34.1', kubeadm: 'v1.34.1' }),
      facts('w1', NEW),
    ];
    const nodesThen = [node('cp1', NEW), node('cp2', 'v1.34.1'), node('w1', NEW)];
    expect(rules({ workersSkipMinors: true }, { hosts: late, nodes: nodesThen })).toEqual([
      'R13',
      'Kd',
    ]);
  });
});

test('a run that continues shows what hosts warn of, and refuses nothing that a half-done upgrade explains', () => {
  const problems = [hard('host', 'no room'), warn('host', 'a step of an earlier run is at work')];
  const hosts = [facts('cp1'), facts('cp2', OLD, { problems }), facts('w1')];
  const { findings } = assess({ ...fresh, hosts, plan: planIn('running') });
  expect(findings).toEqual([warn('host', 'cp2: a step of an earlier run is at work')]);
});

describe('the container runtime that a Node reports', () => {
  const TARGET = 'v1.37.0';
  const said = (reported: string, onDisk: string, wanted?: string): string[] => {
    const w1 = node('w1');
    const nodeInfo = { ...w1.status?.nodeInfo, containerRuntimeVersion: reported };
    const containerd =
      wanted === undefined ? {} : { containerd: { version: wanted, binaries: RUNTIME } };
    const { findings } = assess({
      ...fresh,
      manifest: { ...manifest, version: TARGET, ...containerd },
      hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { ground: { containerd: onDisk } })],
      nodes: [node('cp1'), node('cp2'), { ...w1, status: { ...w1.status, nodeInfo } }],
    });
    return findings.map(({ severity, message }) => `${severity} ${message}`);
  };

  test('counts before the file on the host', () => {
    const old = 'warn w1: containerd 1.7.29: 1.37 is the last with containerd 1.x';
    expect(said('containerd://1.7.29', '2.1.0')).toEqual([old]);
    expect(said('containerd://2.1.0', '1.7.29')).toEqual([]);
    expect(said('cri-o://1.35.2', '1.7.29')).toEqual([]);
  });

  test('is not containerd: a manifest with containerd is refused', () => {
    expect(said('docker://28.0.1', '1.7.29', 'v2.3.3')).toEqual([
      'hard w1: its kubelet uses docker, which is not containerd; leave containerd out of the manifest',
    ]);
  });
});

describe('images without a version', () => {
  const LATEST = 'registry.local/kube-apiserver:latest';
  const DIGEST = 'registry.local/etcd@sha256:0123';
  const { 'kube-apiserver': _, ...others } = facts('cp1').staticPods;
  const judged = (hosts: readonly HostFacts[], allow: Manifest['allow'], version = NEW) =>
    assess({ ...fresh, manifest: { ...manifest, version, allow }, hosts });
  const lines = (hosts: readonly HostFacts[], allow: Manifest['allow'] = [], version = NEW) =>
    judged(hosts, allow, version).findings.map((each) => `${each.severity} ${each.message}`);

  test('an API server whose version is unknown is refused, unless the manifest allows that', () => {
    const cp1 = facts('cp1', OLD, {
      staticPods: others,
      unreadImages: { 'kube-apiserver': LATEST },
    });
    const hosts = [cp1, facts('cp2'), facts('w1')];
    const found = `cp1: the image ${LATEST} has no version in its tag; give it one`;
    expect(lines(hosts)).toEqual([`force ${found}`]);
    expect(lines(hosts, ['F11'])).toEqual([`warn ${found}; the manifest allows this`]);
  });

  test('kubelets then come last, as if it had another minor version', () => {
    const cp1 = facts('cp1', OLD, {
      staticPods: others,
      unreadImages: { 'kube-apiserver': LATEST },
    });
    const { request } = judged([cp1, facts('cp2'), facts('w1')], ['F11']);
    expect(request.kubelets).toEqual(['cp1', 'cp2']);
  });

  test('a member of etcd is judged also where its image has no version', () => {
    const hosts = [
      facts('cp1', OLD, { unreadImages: { etcd: DIGEST } }),
      facts('cp2', OLD, { staticPods: { ...facts('cp2').staticPods, etcd: '3.6.11' } }),
      facts('w1'),
    ];
    const found = `etcd ${DIGEST} to 3.7.0: a version cannot be read`;
    expect(lines(hosts, [], MINOR)).toEqual([`force ${found}`]);
    expect(lines(hosts, ['etcd'], MINOR)).toEqual([`warn ${found}; the manifest allows this`]);
  });
});

test('a control plane that a person has upgraded in part can be continued, once that is allowed', () => {
  const survey = {
    ...fresh,
    hosts: [facts('cp1', MINOR), facts('cp2'), facts('w1')],
    nodes: [node('cp1', MINOR), node('cp2'), node('w1')],
    clusterVersion: MINOR,
  };
  const target = { ...manifest, version: MINOR };
  const refused = assess({ ...survey, manifest: target }).findings;
  expect(refused.filter(({ severity }) => severity !== 'warn').map(({ rule }) => rule)).toEqual([
    'F7',
  ]);
  const { findings, request } = assess({ ...survey, manifest: { ...target, allow: ['F7'] } });
  expect(findings.map(({ rule, severity }) => `${severity} ${rule}`)).toEqual([
    'warn F7',
    'warn R3',
  ]);
  expect(request).toMatchObject({ leader: [], followers: ['cp2'], workers: ['w1'] });
});

describe('a host with cgroup v1', () => {
  const refusal =
    'hard cgroup w1: the kubelet of 1.36 refuses cgroup v1; failCgroupV1: false in ConfigMap kube-system/kubelet-config lifts this';
  const wanted =
    'warn cgroup w1: failCgroupV1: false allows cgroup v1; kubeadm needs ignorePreflightErrors';
  test.each<[string, boolean, string]>([
    ['that no kubelet may run on', false, refusal],
    ['that the ConfigMap allows to kubelets', true, wanted],
  ])('%s', (_name, allowsCgroupV1, line) => {
    const hosts = [facts('cp1'), facts('cp2'), facts('w1', OLD, { ground: { cgroup: 1 } })];
    const { findings } = assess({ ...fresh, allowsCgroupV1, hosts });
    const told = findings.map((each) => `${each.severity} ${each.rule} ${describeFinding(each)}`);
    expect(told).toEqual([expect.stringContaining(line)]);
  });
});

test('what a drain would wait for is told before anybody agrees, and refuses nothing', () => {
  const obstacle = {
    budget: 'default/web',
    pods: ['default/web-1'],
    reason: 'it wants 1 of its 1 pods healthy',
  };
  const refused = {
    pod: 'default/bare',
    reason: 'has no controller, so nobody would create it anew',
  } as const;
  const drainPreviews = new Map([
    ['w1', { evictable: 2, obstacles: [obstacle], refused: [refused] }],
    ['elsewhere', { evictable: 1, obstacles: [obstacle], refused: [] }],
  ]);
  const { findings } = assess({ ...fresh, drainPreviews });
  expect(findings.map(({ rule, severity, message }) => `${severity} ${rule} ${message}`)).toEqual([
    'warn drain w1 cannot be drained now: PodDisruptionBudget default/web blocks default/web-1: it wants 1 of its 1 pods healthy; default/bare has no controller, so nobody would create it anew; spec.drain.force: true of an UpgradePolicy lifts this',
  ]);
});

test.each<[string, Partial<Survey>, string, boolean]>([
  ['is drained', {}, 'w1', true],
  ['is no host of the upgrade', {}, 'w9', false],
  ['is upgraded without a drain', { policy: undrained }, 'w1', false],
])('a webhook whose only node %s', (_, more, only, matters) => {
  const finding = warn('webhook', `only node ${only} answers`);
  const { findings } = assess({ ...fresh, ...more, webhooks: [{ finding, only }] });
  expect(findings.includes(finding)).toBe(matters);
});

test('a webhook that nobody answers for matters only where something is to be done', () => {
  const finding = warn('webhook', 'nobody answers');
  const webhooks = [{ finding }];
  expect(assess({ ...fresh, webhooks }).findings).toContainEqual(finding);
  const there = {
    hosts: NAMES.map((name) => facts(name, NEW)),
    nodes: NAMES.map((name) => node(name, NEW)),
  };
  expect(assess({ ...fresh, ...there, clusterVersion: NEW, webhooks }).findings).toEqual([]);
});

test('once its hosts are done, a plan keeps its digest: the same command goes on with MachineDeployments', () => {
  const pools = { pools: [], rollsPools: true };
  const whole = assess({ ...fresh, ...pools });
  const { data, ...plan } = newPlan(whole.request, whole.start);
  const ended = {
    ...plan,
    data: { ...data, rollout: JSON.stringify({ phase: 'done', blocked: false, stages: [] }) },
  };
  const there = {
    hosts: NAMES.map((name) => facts(name, NEW)),
    nodes: NAMES.map((name) => node(name, NEW)),
  };
  const { request, digest } = assess({
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
    assess({ ...fresh, addons, ...more }).toApply.map(({ name }) => name);
  expect([namesOf({}), namesOf({ ...done, clusterVersion: NEW })]).toEqual([
    ['dns', 'net'],
    ['net'],
  ]);
  const { findings } = assess({ ...fresh, addons: [plan] });
  expect(findings).toContainEqual(
    expect.objectContaining({ severity: 'warn', message: 'dns: it stays' }),
  );
});

test('certificates that nobody renews are told of every host; only those of the operator without one', () => {
  const problems = [warn('certificate', 'it ends'), warn('host', 'its clock is off')];
  const hosts = [facts('cp1', NEW, { problems }), facts('cp2', NEW), facts('w1', NEW)];
  const there = { hosts, nodes: NAMES.map((name) => node(name, NEW)), clusterVersion: NEW };
  const kubeconfig = [warn('certificate', 'yours ends')];
  expect(assess({ ...fresh, ...there, kubeconfig }).findings).toEqual([
    ...kubeconfig,
    warn('certificate', 'cp1: it ends'),
  ]);
});

test('a virtual Node is named, and hides no other finding; a policy lets it count as a host', () => {
  const nodes = [...fresh.nodes, node('aci', 'v1.19.10-vk-azure'), node('w2', 'v1.30.0')];
  const messages = (policy: RolloutPolicy): string[] =>
    assess({ ...fresh, nodes, policy }).findings.map(
      ({ severity, message }) => `${severity} ${message}`,
    );
  const told = messages(DEFAULT_POLICY);
  expect(told).toContain(
    'warn aci is a virtual Node by its kubelet version v1.19.10-vk-azure: no rule of versions is checked for it',
  );
  const refusals = told.filter((each) => each.startsWith('hard'));
  expect(refusals).toHaveLength(2);
  expect(refusals.every((each) => each.includes('kubelet of w2'))).toBe(true);
  const counted = messages({ ...DEFAULT_POLICY, countsVirtual: true });
  expect(
    counted.filter((each) => each.startsWith('hard') && each.includes('aci')).length,
  ).toBeGreaterThan(0);
});
