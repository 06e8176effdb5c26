/** Ways to the situations in which Refit gives an advice: what happens after the plan was applied, for each dialect. */
import { upgradePolicies } from '../../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../../src/api/refit/upgrade-policy.ts';
import type { Situation } from '../../../src/engine/explain/situations.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { FROM as K0S_FROM } from '../../scenes/k0s.ts';
import { type planWith, replacePlan, UPDATE } from '../../scenes/k0s-scene.ts';
import { FROM as KUBEADM_FROM } from '../../scenes/kubeadm-scenes.ts';
import { FROM as RANCHER_FROM } from '../../scenes/rancher.ts';
import { listed } from '../../support/builders/plans.ts';
import { K0S_LAB } from '../labs/k0s-lab.ts';
import { KUBEADM_LAB } from '../labs/kubeadm-lab.ts';
import { command, type Lab, type Operation } from '../labs/lab.ts';
import { MACHINE_LAB } from '../labs/machine-lab.ts';
import { upgradeByHand } from '../labs/node-operations.ts';
import { policy } from '../labs/policies.ts';
import { RANCHER_LAB } from '../labs/rancher-lab.ts';

/** What is done, and the seconds that pass then. An operation of the lab is given by its name. */
export type PathStep = readonly [what: string | Operation, seconds: number];

export interface Path {
  readonly lab: Lab;
  readonly situation: Situation['kind'];
  readonly steps: readonly PathStep[];
  /** What ends the cause outside of Refit, as the advice asks for it, before its first command. */
  readonly repair?: readonly (string | Operation)[];
  /** What the world does afterwards, where the advice waits for something else than a command. */
  readonly world?: readonly (string | Operation)[];
  /** The time, in seconds, in which the situation must end; by default, four minutes. */
  readonly within?: number;
}

/** A selector that no node matches. */
const NOBODY = { discovery: { selector: { labels: 'team=nobody' } } } as const;
const MISSING = { targets: { workers: listed('w1', 'w9') } } as const;

function cordon(node: string): Operation {
  return {
    name: `somebody cordons ${node}`,
    act: async ({ stage }) => {
      await stage.client.patch(nodes, node, { spec: { unschedulable: true } }, { type: 'merge' });
    },
  };
}

const NO_POLICY: Operation = {
  name: 'the policy is deleted',
  act: async ({ stage }) => {
    for (const { metadata } of (await stage.client.list(upgradePolicies)).items)
      await stage.client.delete(upgradePolicies, metadata.name);
  },
};

const BLACKOUT: UpgradePolicySpec = {
  blackouts: [{ from: '2026-11-19T00:00:00Z', to: '2026-12-19T00:00:00Z' }],
};

/** What a path needs to know of a lab. */
interface Names {
  /** The node that starts first, after the control plane. */
  readonly first: string;
  /** The node that starts last. */
  readonly last: string;
  /** The version that the nodes had before. */
  readonly from: string;
  /** An older version, of which the kubelets report another version. */
  readonly older: string;
  /** The version of the plan. */
  readonly to: string;
}

const K0S: Names = {
  first: 'w1',
  last: 'w2',
  from: K0S_FROM,
  older: 'v1.36.2+k0s.0',
  to: 'v1.36.3+k0s.2',
};
const RANCHER: Names = {
  first: 's1',
  last: 's2',
  from: RANCHER_FROM,
  older: RANCHER_FROM,
  to: 'v1.36.3+k3s1',
};
const KUBEADM: Names = {
  first: 'w1',
  last: 'w2',
  from: KUBEADM_FROM,
  older: KUBEADM_FROM,
  to: 'v1.36.3',
};

function only(node: string): { readonly matchLabels: Readonly<Record<string, string>> } {
  return { matchLabels: { 'kubernetes.io/hostname': node } };
}

/** Returns the paths that exist in every dialect. */
function commonPaths(lab: Lab, { first }: Pick<Names, 'first'>): Path[] {
  return [
    { lab, situation: 'NodesFailed', steps: [[`the next upgrade of ${first} fails`, 60]] },
    { lab, situation: 'Aborted', steps: [['abort', 60]] },
    { lab, situation: 'WindowClosed', steps: [['the policy is: only on Saturdays', 45]] },
    { lab, situation: 'Blackout', steps: [[policy('a blackout', BLACKOUT), 45]] },
    {
      lab,
      situation: 'ReleaseRefused',
      steps: [
        ['the check passes', 0],
        ['the policy is: a check', 8],
        ['the check fails', 720],
      ],
      repair: ['the check passes'],
      within: 900,
    },
  ];
}

function hold(node: string): Operation {
  return command(`hold ${node}`, 'hold', node, '--reason', 'disk');
}

/** Returns the paths of a dialect whose plans have several nodes. */
function fleetPaths(lab: Lab, { last, older }: Names): Path[] {
  const isK0s = lab === K0S_LAB;
  return [
    { lab, situation: 'Held', steps: [[hold(last), 120]] },
    {
      lab,
      situation: 'CordonedByOthers',
      steps: [
        [cordon(last), 0],
        [policy('one node may be unavailable', { maxUnavailable: 1 }), 90],
      ],
    },
    {
      lab,
      situation: 'Differs',
      steps: [
        [NO_POLICY, 120],
        [upgradeByHand(last, older, isK0s ? kubernetesPartOf(older) : older), 300],
      ],
    },
  ];
}

/** Returns the paths of a dialect whose plans have several workers. In the lab of Rancher, all nodes are servers. */
function workerPaths(lab: Lab, { last, from }: Names): Path[] {
  return [
    {
      lab,
      situation: 'WaveUnapproved',
      steps: [['the policy is: waves with an approval', 120]],
    },
    {
      lab,
      situation: 'LeftOut',
      steps: [
        [policy('held nodes are left out', { holds: 'Finish' }), 0],
        [hold(last), 120],
      ],
    },
    {
      lab,
      situation: 'PinnedLeftOut',
      steps: [
        [
          policy('the last node is pinned', {
            holds: 'Finish',
            versions: { pin: [{ selector: only(last), version: from }] },
          }),
          120,
        ],
      ],
    },
  ];
}

/** The operation that replaces the Plan of k0s by another one. */
function replacedBy(name: string, update: Parameters<typeof planWith>[0]): Operation {
  return { name, act: async ({ stage }) => await replacePlan(stage, update ?? {}, 'id2') };
}

const CORRECTED: Operation = replacedBy('the corrected Plan is applied', UPDATE);

const K0S_PATHS: readonly Path[] = [
  {
    lab: K0S_LAB,
    situation: 'RetriedByItself',
    steps: [
      [policy('a failed node is tried again later', { retry: { attempts: 2, backoff: '10m' } }), 0],
      ['the next upgrade of w1 fails', 60],
    ],
  },
  {
    lab: K0S_LAB,
    situation: 'NodesGone',
    steps: [
      ['w2 falls silent', 60],
      ['w2 is lost', 120],
    ],
    repair: ['all hosts answer again', 'w2 joins again'],
  },
  {
    lab: K0S_LAB,
    situation: 'Edited',
    steps: [
      [NO_POLICY, 120],
      ['the version is edited to the newest', 10],
    ],
  },
  {
    lab: K0S_LAB,
    situation: 'Edited',
    steps: [
      ['the next upgrade of w1 fails', 90],
      ['the version is edited to the newest', 10],
    ],
  },
  {
    lab: K0S_LAB,
    situation: 'MixedVersions',
    steps: [
      [NO_POLICY, 45],
      ['the version is edited to the newest', 120],
    ],
  },
  {
    lab: K0S_LAB,
    situation: 'StartsAgain',
    steps: [
      ['the policy is: an edit after the end restarts the plan', 120],
      ['the leader stops', 1],
      ['the version is edited to the newest', 10],
    ],
    world: ['a leader starts'],
  },
  {
    lab: K0S_LAB,
    situation: 'Empty',
    steps: [[replacedBy('a Plan without a node', { targets: { workers: NOBODY } }), 30]],
  },
  {
    lab: K0S_LAB,
    situation: 'Failed',
    steps: [[replacedBy('a Plan with a node that does not exist', MISSING), 30]],
  },
  {
    lab: K0S_LAB,
    situation: 'Refused',
    steps: [[replacedBy('a Plan without a version', { version: '' }), 30]],
  },
  {
    lab: K0S_LAB,
    situation: 'WillBeRefused',
    steps: [
      ['the leader stops', 1],
      [replacedBy('a Plan without a version', { version: '' }), 10],
    ],
    repair: [CORRECTED],
    world: ['a leader starts'],
  },
];

export const PATHS: readonly Path[] = [
  ...commonPaths(K0S_LAB, K0S),
  ...fleetPaths(K0S_LAB, K0S),
  ...workerPaths(K0S_LAB, K0S),
  ...K0S_PATHS,
  ...commonPaths(RANCHER_LAB, RANCHER),
  ...fleetPaths(RANCHER_LAB, RANCHER),
  {
    lab: RANCHER_LAB,
    situation: 'MendedKeepsSlot',
    steps: [
      ['the next upgrade of s1 fails', 60],
      [upgradeByHand('s1', RANCHER.to), 10],
    ],
  },
  ...commonPaths(KUBEADM_LAB, KUBEADM),
  ...fleetPaths(KUBEADM_LAB, KUBEADM),
  ...workerPaths(KUBEADM_LAB, KUBEADM),
  {
    lab: KUBEADM_LAB,
    situation: 'Mended',
    steps: [
      ['the next upgrade of w1 fails', 60],
      [upgradeByHand('w1', KUBEADM.to), 10],
    ],
  },
  {
    lab: KUBEADM_LAB,
    situation: 'NodesGone',
    steps: [
      ['w2 falls silent', 60],
      ['w2 is lost', 120],
    ],
    repair: ['all hosts answer again'],
  },
  ...commonPaths(MACHINE_LAB, { first: 'w1' }),
  {
    lab: MACHINE_LAB,
    situation: 'Held',
    steps: [
      ['hold w1', 60],
      ['Cluster API asks for another version of w1', 60],
    ],
  },
];

/** Every situation in which Refit gives an advice. A new situation does not compile without an entry. */
const EACH: Readonly<Record<Situation['kind'], true>> = {
  WillBeRefused: true,
  Refused: true,
  MixedVersions: true,
  StartsAgain: true,
  Edited: true,
  Aborted: true,
  Differs: true,
  Empty: true,
  Mended: true,
  MendedKeepsSlot: true,
  RetriedByItself: true,
  ReleaseRefused: true,
  NodesFailed: true,
  NodesGone: true,
  Failed: true,
  LeftOut: true,
  PinnedLeftOut: true,
  CordonedByOthers: true,
  WaveUnapproved: true,
  Held: true,
  WindowClosed: true,
  Blackout: true,
};
export const SITUATIONS = Object.keys(EACH) as readonly Situation['kind'][];

/** `npm test` follows every fourth path, and `npm run test:real` the others. */
const SHARE = 4;
export const FIRST_TIER: readonly Path[] = PATHS.filter((_, index) => index % SHARE === 0);
export const SECOND_TIER: readonly Path[] = PATHS.filter((_, index) => index % SHARE !== 0);
