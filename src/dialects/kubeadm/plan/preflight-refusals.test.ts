/** Tests which problems refuse an upgrade, and which options allow the upgrade anyway. */
import { describe, expect, test } from 'vitest';
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
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import type { Node } from '../../../kube/resources.ts';
import { describeFinding, hard } from '../../../versions/findings.ts';
import type { HostFacts } from '../host/probe.ts';
import type { Manifest } from './manifest.ts';
import { newPlan } from './plan-object.ts';
import { assessHosts, type Survey } from './preflight.ts';

const KUBEONE = 'kubeone.io/upgrade-in-progress';

function marked(name: string): Node {
  const { metadata, ...rest } = node(name);
  return { ...rest, metadata: { ...metadata, labels: { ...metadata.labels, [KUBEONE]: '' } } };
}

const RUNTIME = { containerd: { path: '/c' }, 'containerd-shim-runc-v2': { path: '/s' } };

const OF_W2 = { file: '/k.pem', isAuthority: false, until: 0, soon: 0, nodeName: 'w2' };

describe('Refit reports the problems of the hosts and the cluster before an upgrade', () => {
  test.each<[string, Partial<Survey>, string[]]>([
    [
      'F1: Refit refuses a manifest that lacks a control-plane host',
      { nodes: [...fresh.nodes, node('cp3')] },
      ['F1 the manifest does not list all control-plane hosts; add cp3'],
    ],
    [
      'F2: Refit refuses a host that has no Node in the cluster',
      { nodes: [node('cp1'), node('cp2')] },
      [
        'F2 host w1: the cluster has no Node of this name; correct the name, or take the host out of the manifest',
      ],
    ],
    [
      'F2: Refit names the Node that a host with a domain is probably',
      { nodes: [node('cp1'), node('cp2'), node('w1.example.com')] },
      [
        'F2 host w1: the cluster has no Node of this name; perhaps w1.example.com is meant: correct the name, or take the host out of the manifest',
      ],
    ],
    [
      'F2: Refit refuses a worker that the manifest calls a control-plane host',
      { nodes: [node('cp1'), { ...node('cp2'), metadata: { name: 'cp2' } }, node('w1')] },
      [
        `F2 host cp2 has role controlPlane, but its Node lacks the label ${CONTROL_PLANE}; correct the role`,
      ],
    ],
    [
      'F2: an address that leads to another host',
      { hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { certificates: [OF_W2] })] },
      [
        'F2 host w1: its address belongs to the host of Node w2, according to the certificate of the kubelet there; correct the address',
      ],
    ],
    [
      'F3: Refit refuses an upgrade if a worker is not Ready',
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
      'F4: a roll-back to another version has begun',
      { plan: newPlan({ ...REQUEST, version: 'v1.36.1', back: true }, 'sha256:1') },
      [
        'F4 a roll-back to v1.36.1 is in progress (ConfigMap kube-system/refit-kubeadm); finish it with its own manifest first',
      ],
    ],
    [
      'F4: a host of the upgrade that has begun is gone from the manifest',
      {
        plan: newPlan({ ...REQUEST, workers: ['w1', 'w2'] }, 'sha256:1'),
        nodes: [...fresh.nodes, node('w2')],
      },
      ['F4 the plan in progress needs hosts that the manifest no longer lists; add w2 again'],
    ],
    [
      'F4: Refit refuses an upgrade if a control-plane node has the label of a KubeOne upgrade',
      { nodes: [node('cp1'), marked('cp2'), node('w1')] },
      [
        `F4 a KubeOne upgrade is in progress on cp2 (the Node does not say who set it); finish it, then remove the label ${KUBEONE}`,
      ],
    ],
    [
      'F4: Refit also finds the label of a KubeOne upgrade on a worker; KubeOne does not look there',
      { nodes: [node('cp1'), node('cp2'), marked('w1')] },
      [
        `F4 a KubeOne upgrade is in progress on w1 (the Node does not say who set it); finish it, then remove the label ${KUBEONE}`,
      ],
    ],
    [
      'R2: Refit reports a skipped minor version with one finding',
      { manifest: { ...manifest, version: 'v1.39.1' } },
      ['R2 API servers are at v1.36.2: go to v1.37 first, then to v1.39.1'],
    ],
    [
      'R12: Refit refuses a lower patch version with one finding, even if API servers differ',
      { hosts: [facts('cp1', 'v1.36.4'), facts('cp2'), facts('w1')] },
      ['R12 API servers are at v1.36.4, and v1.36.3 is older'],
    ],
    [
      'R12: a minor version back, too',
      { manifest: { ...manifest, version: 'v1.35.9' } },
      [
        'R12 API servers are at v1.36.2 and cannot go back to v1.35.9: Kubernetes does not support a return to an older minor version, because etcd may hold objects that this version cannot read',
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
      'F7: Refit refuses an upgrade if API servers differ in version and no upgrade is in progress',
      { hosts: [facts('cp1', NEW), facts('cp2'), facts('w1')] },
      [
        'F7 API servers have different versions, from v1.36.2 to v1.36.3, and no upgrade of this plan is in progress',
      ],
    ],
    [
      'F11: no kubeadm',
      { hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { kubeadm: undefined })] },
      ['F11 w1: cannot read the version of kubeadm; check that it is installed'],
    ],
    [
      'F11: Refit refuses a control-plane host if a static pod has no version',
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
      'Refit checks cgroup, containerd and kernel of each host for the new kubelet, and names the host',
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
        'kernel w1: Linux 4.18 is not among the kernels that kubeadm 1.36 supports',
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
        'containerd cp2: containerd is at v2.4.0: Refit does not downgrade to v2.3.3; set containerd.version to v2.4.0 or later',
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
      ['etcd upgrade of etcd from 3.5.19-0 to 3.6: every member must be at 3.5.20 or later'],
    ],
    [
      'Kd: a host that missed a minor version',
      { hosts: [facts('cp1'), facts('cp2'), facts('w1', OLD, { kubeadm: 'v1.34.1' })] },
      [
        'Kd w1: the node was last managed by kubeadm 1.34: 1.36 is more than one minor version newer',
      ],
    ],
    [
      'R10: Refit also checks the kubelet of a node that is not in the manifest',
      { nodes: [...fresh.nodes, node('dynamic', 'v1.32.0')] },
      [
        'R3 kubelet of dynamic at v1.32.0 is more than 3 minor versions behind an API server at v1.36.2',
        'R10 kubelet of dynamic at v1.32.0 would be 4 minor versions behind v1.36.3 (R3); upgrade it first',
      ],
    ],
  ])('%s', (_name, change, wanted) => {
    const { findings } = assessHosts({ ...fresh, ...change });
    const refusals = findings.filter(({ severity }) => severity !== 'warn').map(describeFinding);
    const remedy =
      /; no setting allows this: \w|; \w[^;]*; no setting allows this$|[^;] allows this$/;
    for (const told of refusals) expect(told).toMatch(remedy);
    expect(findings.map(({ rule, message }) => `${rule} ${message}`)).toEqual(wanted);
  });
});

describe('a worker two minor versions behind', () => {
  const hosts = [facts('cp1', NEW), facts('cp2', NEW), facts('w1', 'v1.34.1')];
  const nodes = [node('cp1', NEW), node('cp2', NEW), node('w1', 'v1.34.1')];
  const rules = (more: Partial<Manifest>, change: Partial<Survey> = {}): string[] => {
    const survey = { ...fresh, hosts, nodes, clusterVersion: NEW, ...change };
    return assessHosts({ ...survey, manifest: { ...manifest, ...more } }).findings.map(
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

describe('the container runtime that a Node reports', () => {
  const TARGET = 'v1.37.0';
  const said = (reported: string, onDisk: string, wanted?: string): string[] => {
    const w1 = node('w1');
    const nodeInfo = { ...w1.status?.nodeInfo, containerRuntimeVersion: reported };
    const containerd =
      wanted === undefined ? {} : { containerd: { version: wanted, binaries: RUNTIME } };
    const { findings } = assessHosts({
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
    assessHosts({ ...fresh, manifest: { ...manifest, version, allow }, hosts });
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
    const found = `upgrade of etcd from ${DIGEST} to 3.7: a version cannot be read`;
    expect(lines(hosts, [], MINOR)).toEqual([`force ${found}`]);
    expect(lines(hosts, ['etcd'], MINOR)).toEqual([`warn ${found}; the manifest allows this`]);
  });
});
