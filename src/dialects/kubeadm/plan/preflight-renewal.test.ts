/** Proves what preflight plans and refuses if all hosts have the version and certificates end soon. */
import { expect, test } from 'vitest';
import { ORDINARY, stageWith } from '../../../../test/support/kubeadm/survey.ts';
import { withCordon, writeOwner } from '../../../drain/cordon-marks.ts';
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import type { ConfigMap, Node } from '../../../kube/resources.ts';
import { hard, warn } from '../../../versions/findings.ts';
import type { HostFacts } from '../host/probe.ts';
import { parseManifest } from './manifest.ts';
import { newPlan, requestFor } from './plan-object.ts';
import { assessHosts, type Survey } from './preflight.ts';

const VERSION = 'v1.36.3';
const NAMES = ['cp1', 'cp2', 'w1'];
const PODS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const manifest = parseManifest(
  `version: ${VERSION}
hosts: [{ name: cp1, role: controlPlane }, { name: cp2, role: controlPlane }, { name: w1, role: worker }]
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`,
  'cluster.yaml',
);
/** The plan in which the renewal of the certificates on `cp1` has failed. */
const RENEWED = stageWith('certificates', { cp1: 'failed', cp2: 'pending' });

function node(name: string, ready: 'True' | 'False' = 'True'): Node {
  return {
    metadata: { name, labels: name.startsWith('cp') ? { [CONTROL_PLANE]: '' } : {} },
    status: {
      nodeInfo: { kubeletVersion: VERSION },
      conditions: [{ type: 'Ready', status: ready }],
    },
  };
}

/** Returns a survey in which all certificates on each host end soon. */
function surveyOf(more: Partial<HostFacts>): Survey {
  const facts = manifest.hosts.map((host) => ({
    host,
    kubeadm: VERSION,
    kubelet: VERSION,
    ground: {},
    staticPods:
      host.role === 'controlPlane' ? Object.fromEntries(PODS.map((pod) => [pod, VERSION])) : {},
    problems: [],
    busy: [],
    apiPort: undefined,
    missing: [],
    certificates: [],
    etcd: undefined,
    toRenew: ['apiserver.crt ends soon'],
    ...more,
  }));
  return {
    manifest,
    hosts: facts,
    nodes: NAMES.map((name) => node(name)),
    clusterVersion: VERSION,
    ...ORDINARY,
  };
}

function planWith(phase: string, stages: readonly object[]): ConfigMap {
  const request = requestFor(manifest, {
    done: new Set(NAMES),
    leaderIsDone: true,
    isMinor: false,
    toRenew: new Set(NAMES),
  });
  const plan = newPlan(request, 'sha256:1');
  return {
    ...plan,
    data: { ...plan.data, rollout: JSON.stringify({ phase, blocked: false, stages }) },
  };
}

test('a clock that is off and a kubelet that does not run are told, files of an upgrade not', () => {
  const problems = [warn('clock', 'is off'), hard('kubelet', 'stopped'), hard('host', 'no binary')];
  const { findings } = assessHosts(surveyOf({ problems }));
  const told = ['cp1', 'cp2'].flatMap((name) => [
    warn('clock', `${name}: is off`),
    hard('kubelet', `${name}: stopped`),
  ]);
  expect(findings).toEqual(told);
});

test('a worker with the files of a former control plane has none of them renewed', () => {
  expect(assessHosts(surveyOf({})).request.certificates).toEqual(['cp1', 'cp2']);
});

test('a failed renewal leaves no host half upgraded: the next plan checks all as for the first time', () => {
  const nodes = NAMES.map((name) => node(name, name === 'cp1' ? 'False' : 'True'));
  const survey = { ...surveyOf({}), nodes, plan: planWith('failed', [RENEWED]) };
  const { continues, findings } = assessHosts(survey);
  expect([continues, findings.map(({ rule }) => rule)]).toEqual([false, ['F3']]);
});

test.each([
  ['one that runs', 'running', [RENEWED]],
  [
    'one after which an upgrade began',
    'failed',
    [stageWith('certificates', { cp1: 'done' }), stageWith('leader', { cp1: 'failed' })],
  ],
  ['one of which nothing is recorded yet', 'new', []],
])('%s goes on where it stopped', (_which, phase, stages) => {
  expect(assessHosts({ ...surveyOf({}), plan: planWith(phase, stages) }).continues).toBe(true);
});

test('a node that no run will uncordon is told, with the command', () => {
  const owner = writeOwner({ plan: 'uid', attempt: '2026-11-20T08:00:00Z', kind: 'ConfigMap' });
  const survey = surveyOf({});
  const nodes = NAMES.map((name) => (name === 'w1' ? withCordon(node(name), owner) : node(name)));
  expect(assessHosts({ ...survey, nodes }).findings).toEqual([
    ...assessHosts(survey).findings,
    warn(
      'cordon',
      'node w1: an earlier run left the node cordoned; when the node works again, run kubectl uncordon w1',
    ),
  ]);
  // `kubectl uncordon` does not remove the annotation of Refit from the Node.
  const uncordoned = nodes.map((each) => ({ ...each, spec: {} }));
  expect(assessHosts({ ...survey, nodes: uncordoned }).findings).toEqual(
    assessHosts(survey).findings,
  );
  const plan = planWith('running', []);
  expect(assessHosts({ ...survey, nodes, plan }).findings.map(({ rule }) => rule)).not.toContain(
    'cordon',
  );
});
