/**
 * Tests that each file which reads the version of a kubelet is known, together with the way in which it compares the
 * version. The kubelet of k0s reports no build: it says `v1.36.3+k0s` where a Plan says `v1.36.3+k0s.2`. So a comparison
 * of the texts would call each upgraded worker of k0s outdated.
 */
import { expect, test } from 'vitest';
import { filesOf } from './tree.ts';

/** Compares with a function that knows versions without a build. The function must occur in the file. */
type By = 'isOlder' | 'mayBePartOf' | 'kubernetesPartOf' | 'mayBeSameVersion' | 'isReported';
/** A reason why the file needs none of these functions. */
type Reason = `shows: ${string}` | `passes on: ${string}` | `exact: ${string}`;

const READERS: Readonly<Record<string, readonly (By | Reason)[]>> = {
  'src/agent/object/report-writer.ts': [
    'shows: the version before the upgrade, as the Node says it',
  ],
  'src/agent/observe.ts': ['passes on: the version before the upgrade'],
  'src/agent/service/kubelet-heartbeat.ts': ['kubernetesPartOf'],
  'src/dialects/autopilot/command/migration-facts.ts': ['shows: which k0s the nodes have'],
  'src/dialects/autopilot/plan/autopilot-dialect.ts': ['isOlder'],
  'src/dialects/autopilot/plan/readiness.ts': ['exact: only asks whether the text names k0s'],
  'src/dialects/autopilot/plan/roll-back-plan.ts': ['passes on: the versions of present nodes'],
  'src/dialects/capi/command/machine-controls.ts': ['mayBePartOf'],
  'src/dialects/capi/hooks/updaters/answer-can.ts': ['passes on: the version rules compare it'],
  'src/dialects/capi/plan/capi-dialect.ts': ['isOlder'],
  'src/dialects/capi/plan/machine-groups.ts': [
    'exact: a version without its build does not prove that Cluster API asks for no update',
  ],
  'src/dialects/capi/plan/procedures.ts': ['exact: only asks whether the text names k0s'],
  'src/dialects/capi/plan/stuck-machines.ts': ['mayBePartOf'],
  'src/dialects/capi/plan/update-machine.ts': [
    'mayBePartOf',
    'exact: before an update, a version without its build does not prove that nothing has to be done',
  ],
  'src/dialects/cattle/command/roll-back-cattle-plan.ts': [
    'exact: the kubelets of K3s and RKE2 report the whole version',
  ],
  'src/dialects/cattle/command/upgrade-rancher.ts': ['isReported'],
  'src/dialects/cattle/plan/awaited-plan.ts': [
    'exact: the scripts of K3s and RKE2 compare the whole text, too',
  ],
  'src/dialects/cattle/plan/cattle-dialect.ts': ['isOlder'],
  'src/dialects/cattle/plan/drain-rights.ts': [
    'exact: only asks whether the text names K3s or RKE2',
  ],
  'src/dialects/cattle/plan/node-records.ts': [
    'exact: the kubelets of K3s and RKE2 report the whole version, and the label has - instead of +',
  ],
  'src/dialects/cattle/plan/version-rules.ts': ['isReported', 'isOlder'],
  'src/dialects/kubeadm/agent/perform-on-kubeadm.ts': ['passes on: the version before the upgrade'],
  'src/dialects/kubeadm/command/kubeadm-command.ts': ['shows: the version of each host'],
  'src/dialects/kubeadm/host/host-steps.ts': ['exact: kubeadm installs versions without a build'],
  'src/dialects/kubeadm/host/verify.ts': ['exact: kubeadm installs versions without a build'],
  'src/dialects/kubeadm/plan/host-report.ts': ['shows: the version before the upgrade'],
  'src/dialects/kubeadm/plan/kubeadm-dialect.ts': ['isOlder'],
  'src/dialects/kubeadm/plan/kubeadm-signal.ts': [
    'exact: kubeadm installs versions without a build',
  ],
  'src/dialects/kubeadm/plan/machine-pools.ts': [
    'exact: kubeadm installs versions without a build',
  ],
  'src/dialects/kubeadm/plan/preflight.ts': ['exact: kubeadm installs versions without a build'],
  'src/dialects/kubeadm/plan/survey-nodes.ts': ['passes on: the versions of one host'],
  'src/dialects/shared/agents-ground.ts': ['passes on: the rules of k0s compare minor versions'],
  'src/engine/assess/advance.ts': ['passes on: the version rules compare minor versions'],
  'src/engine/gates/api-servers-first.ts': ['passes on: the version rules compare minor versions'],
  'src/engine/snapshot/gather.ts': ['passes on: the version that the target has'],
  'src/engine/snapshot/predicates.ts': ['passes on: the expressions of a policy'],
  'src/kube/resources.ts': ['passes on: it defines how to read the version'],
  'src/kube/virtual-nodes.ts': ['exact: only asks whether the text is a version of Kubernetes'],
  'src/ready/checks/versions.ts': ['passes on: the version rules compare minor versions'],
  'src/ready/readiness.ts': ['shows: the present versions'],
  'src/signal/at-work.ts': ['exact: only asks whether the text names k0s'],
  'src/updates/update-follower.ts': ['passes on: the choice of the next version'],
};

const FUNCTIONS = /^[a-z]\w+$/i;
const reads = (text: string): boolean => /\bkubeletVersion(Of)?\b(?!: z\.)/.test(text);

const FILES = new Map(
  filesOf('src/**/*.ts')
    .filter(({ path, text }) => !path.endsWith('.test.ts') && reads(text))
    .map(({ path, text }) => [path, text]),
);

test('each file that reads the version of a kubelet says how it compares the version', () => {
  expect([...FILES.keys()].toSorted()).toEqual(Object.keys(READERS).toSorted());
});

test.each(Object.entries(READERS))(
  '%s compares the version of a kubelet as listed',
  (path, ways) => {
    for (const way of ways)
      if (FUNCTIONS.test(way)) expect(FILES.get(path)).toMatch(new RegExp(`\\b${way}\\(`));
  },
);

test('only a file with a reason compares the text of the version itself', () => {
  const compared = /kubeletVersion(Of\([^()]*\))?\)? (===|!==) (?!undefined|'')/;
  const found = [...FILES].filter(([, text]) => compared.test(text)).map(([path]) => path);
  const allowed = found.filter((path) =>
    READERS[path]?.some((way) => way.startsWith('exact: ') || way === 'kubernetesPartOf'),
  );
  expect(found).not.toEqual([]);
  expect(found).toEqual(allowed);
});
