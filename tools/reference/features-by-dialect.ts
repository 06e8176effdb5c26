/** Says which features work in which dialect, and why not in the others. Scenes that are played in every dialect prove it. */
import type { DialectName } from '../../src/api/refit/upgrade-policy.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import type { PolicyField } from '../../src/engine/policy/policy-effects.ts';
import type { Feature } from './features-data.ts';

/** The columns of the table of features: the name of each dialect, and how people call it. */
export const DIALECT_COLUMNS = {
  autopilot: 'k0s',
  cattle: 'system-upgrade-controller',
  kubeadm: 'kubeadm',
  capi: 'Cluster API',
} as const satisfies Readonly<Record<DialectName, string>>;

/** The dialects in the order of the columns. */
export const DIALECT_ORDER = Object.keys(DIALECT_COLUMNS) as readonly DialectName[];

export interface Cell {
  readonly state: Feature['state'];
  /** Why the feature does not work in the dialect, or only in part. */
  readonly why?: string;
}

type Exceptions = Partial<Readonly<Record<DialectName, Cell>>>;

const KUBELET_PULLS = 'the kubelet pulls the images of its Jobs';
const CLUSTER_API_CHOOSES = 'Cluster API chooses the Machines and their order';
const HOSTS_LISTED = 'the manifest lists the hosts';
const COMMAND_BY_HAND = 'a person begins each upgrade with `refit kubeadm apply`';
const PACKAGES = 'the package manager of the host downloads and checks the packages';
const IMAGE_DECIDES = 'the image of the Plan decides what happens on the host';

const no = (why: string): Cell => ({ state: 'no', why });
const partly = (why: string): Cell => ({ state: 'partly', why });

/** The cells that differ from the feature as a whole for another reason than a field of a policy, by the name of the feature. */
export const EXCEPTIONS: Readonly<Record<string, Exceptions>> = {
  'New versions found in a channel': {
    kubeadm: no(COMMAND_BY_HAND),
    capi: no('the version stands in the owner of the Machines'),
  },
  'Several minor versions with one object': {
    cattle: no('a Plan with K3s or RKE2 may not skip a minor version'),
    capi: no('the owner of the Machines has one version'),
  },
  'Downloads before the turn of a node': {
    capi: no(CLUSTER_API_CHOOSES),
  },
  'Selection by labels': {
    kubeadm: no(HOSTS_LISTED),
    capi: no(CLUSTER_API_CHOOSES),
  },
  'The order of a list of nodes is kept': {
    cattle: no('a Plan has no list of nodes'),
    capi: no(CLUSTER_API_CHOOSES),
  },
  'Nodes that join during a rollout': {
    kubeadm: partly('the manifest lists the hosts, and a host whose Node is gone can be left out'),
    capi: no(CLUSTER_API_CHOOSES),
  },
  'Control plane before workers': {
    cattle: partly('only if the Plan installs K3s or RKE2'),
  },
  'Control plane one at a time, with quorum': {
    cattle: partly('only if the Plan installs K3s or RKE2'),
  },
  'Check of disk space and resources': {
    cattle: no(KUBELET_PULLS),
  },
  'Downloads are reachable before the first cordon': {
    capi: partly('the agent checks the download when its Machine comes'),
  },
  'Snapshot of etcd before the control plane': {
    cattle: no(IMAGE_DECIDES),
    capi: partly('only Machines with k0s'),
  },
  'A node goes back by itself': {
    cattle: no(IMAGE_DECIDES),
    kubeadm: partly('kubelet and containerd; kubeadm restores static pods'),
  },
  'Nothing starts that cannot finish in the window': {
    kubeadm: partly('the time of the first host is not known'),
    capi: partly('only the last upgrade of the same node is known'),
  },
  Digests: {
    kubeadm: partly(PACKAGES),
  },
  'Broken downloads are resumed': {
    cattle: no(KUBELET_PULLS),
    kubeadm: no(PACKAGES),
  },
  'Works with GitOps': {
    kubeadm: no(COMMAND_BY_HAND),
  },
};

/**
 * The fields of a policy of which a feature consists, by the name of the feature. If some of them have no effect in a
 * dialect, the dialect has the feature in part; if none of them has one, it does not have the feature.
 */
const FIELDS: Readonly<Record<string, readonly PolicyField[]>> = {
  'Order and limits by failure domain': ['perDomain', 'order', 'spread', 'drain.startWith'],
  'Canaries and waves': ['waves', 'waves[].approval', 'waves[].failureBudget'],
  'Time for a node to settle before the next': ['waves[].settle', 'settle'],
  'Leaves out a node that cannot be drained': ['maxBlockedNodes'],
  'Failure budget': ['failureBudget', 'maxConsecutiveFailures', 'waves[].failureBudget'],
  'Time limit for each node': [
    'deadlines.answer',
    'deadlines.drain',
    'deadlines.target',
    'deadlines.ready',
  ],
  'Automatic retries': ['retry'],
};

/** Returns the cell of a feature in a dialect. */
export function cellOf({ name, state }: Feature, dialect: DialectName): Cell {
  if (state === 'no') return { state };
  const exception = EXCEPTIONS[name]?.[dialect];
  if (exception) return exception;
  const policyEffects = MODULES.find((module) => module.name === dialect)?.policyEffects;
  const effects = (FIELDS[name] ?? []).flatMap((field) => policyEffects?.[field] ?? []);
  const lacking = effects.flatMap((effect) => (effect.kind === 'works' ? [] : [effect]));
  const [first] = lacking;
  if (first === undefined) return { state };
  const isMissing = effects.every(({ kind }) => kind === 'none');
  return { state: isMissing ? 'no' : 'partly', why: first.why };
}
