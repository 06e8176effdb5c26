/** Tests which change rolls Machines of Cluster API back, and when such a change does not exist. */
import { describe, expect, test } from 'vitest';
import {
  CONTROL_PLANE_LABEL,
  type ExtensionConfig,
  type Machine,
  UNCHECKED_VERSION_ANNOTATION,
} from '../../../api/capi/machine.ts';
import type { NodeRollout, NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import {
  type MachineScene,
  machineWayBack,
  type Owner,
  patchLine,
  roleOf,
} from './machine-way-back.ts';

const OLDER = 'v1.36.1';
const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
const MINOR = 'v1.37.0';

const POOL: Owner = {
  object: { metadata: { name: 'pool', namespace: 'prod' } },
  kind: 'MachineDeployment',
  resource: 'machinedeployments.cluster.x-k8s.io',
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  path: ['spec', 'template', 'spec', 'version'],
  rollout: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
};
const PLANE: Owner = {
  ...POOL,
  object: { metadata: { name: 'plane', namespace: 'prod' } },
  kind: 'KubeadmControlPlane',
  resource: 'kubeadmcontrolplanes.controlplane.cluster.x-k8s.io',
  path: ['spec', 'version'],
  replicas: 3,
};
const TOPOLOGY: Owner = {
  ...POOL,
  object: { metadata: { name: 'blue', namespace: 'prod' } },
  kind: 'Cluster',
  resource: 'clusters.cluster.x-k8s.io',
  path: ['spec', 'topology', 'version'],
};

const machineAt = (name: string, version: string, isControlPlane = false): Machine => ({
  metadata: {
    name,
    namespace: 'prod',
    labels: isControlPlane ? { [CONTROL_PLANE_LABEL]: '' } : {},
  },
  spec: { clusterName: 'blue', version },
  status: { nodeRef: { name: `node-${name}` } },
});

/** Returns the NodeRollout of a Machine whose last run went from one version to another. */
function recordOf(
  machine: Machine,
  version: string | undefined,
  more: Partial<NodeRolloutRun> = {},
): NodeRollout {
  const { name } = machine.metadata;
  const run: NodeRolloutRun = {
    id: 'r1',
    planUid: 'u1',
    version: machine.spec?.version ?? '',
    started: '2026-01-01T00:00:00Z',
    phase: 'done',
    counts: { total: 1, done: 1, failed: 0, inProgress: 0, pending: 0, skipped: 0 },
    before: [
      {
        role: roleOf(machine),
        nodes: [`node-${name}`],
        ...(version === undefined ? {} : { version }),
      },
    ],
    ...more,
  };
  const plan = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine', name };
  const phase = run.phase as 'done' | 'failed';
  return { metadata: { name: `capi-${name}` }, spec: { plan }, status: { phase, history: [run] } };
}

/** Returns the NodeRollout of a MachineDeployment or of a control plane, whose Machines are one plan. */
function recordOfOwner(
  { kind, name }: { readonly kind: string; readonly name: string },
  before: NonNullable<NodeRolloutRun['before']>,
  more: Partial<NodeRolloutRun> = {},
): NodeRollout {
  const { spec, ...record } = recordOf(W1, OLD, { before, id: 'of-owner', ...more });
  return {
    ...record,
    metadata: { name: `capi-${name}` },
    spec: { ...spec, plan: { ...spec.plan, kind, name } },
  };
}

const ALLOWS: ExtensionConfig = {
  metadata: { name: 'refit' },
  spec: { settings: { allowedVersionRules: 'SkippedMinor, Downgrade' } },
};

const sceneOf = (
  machines: readonly Machine[],
  records: readonly NodeRollout[],
  more: Partial<MachineScene> = {},
): MachineScene => ({
  owner: POOL,
  machines,
  servers: [NEW],
  rollouts: records,
  extension: ALLOWS,
  now: 0,
  ...more,
});

const W1 = machineAt('w1', NEW);
const W2 = machineAt('w2', NEW);
const W3 = machineAt('w3', NEW);
const C1 = machineAt('c1', NEW, true);

describe('the change', () => {
  test('a MachineDeployment goes back as a whole, and each Machine is named with what it ran', () => {
    const records = [recordOf(W1, OLD), recordOf(W2, OLDER)];
    const change = machineWayBack(sceneOf([W1, W2, W3], records, { named: 'w1' }));
    expect(change).toMatchObject({ version: OLD, first: [] });
    expect(patchLine(change)).toBe(
      `kubectl patch machinedeployments.cluster.x-k8s.io pool -n prod --type=merge -p '{"spec":{"template":{"spec":{"version":"v1.36.2"}}}}'`,
    );
    expect(change.moves.map(({ machine, note }) => `${machine}: ${note}`)).toEqual([
      'w1: ran this version before',
      'w2: ran v1.36.1 before, not this version',
      'w3: may never have run this version: Refit has recorded no update of it to v1.36.3',
    ]);
  });

  test('a Machine that has the older version already is no move', () => {
    const stays = machineAt('w2', OLD);
    expect(machineWayBack(sceneOf([W1, stays], [recordOf(W1, OLD)])).moves).toHaveLength(1);
  });

  test('a control plane goes back within its minor version', () => {
    const change = machineWayBack(sceneOf([C1], [recordOf(C1, OLD)], { owner: PLANE }));
    expect(patchLine(change)).toContain(
      `plane -n prod --type=merge -p '{"spec":{"version":"v1.36.2"}}'`,
    );
    expect(change.lost.join('\n')).toContain(
      'Objects in etcd and the version of etcd do not change',
    );
  });

  test('the record of a kubelet of k0s names the release that Refit knows', () => {
    const moved = machineAt('w1', 'v1.36.3+k0s.1');
    const record = recordOf(moved, 'v1.36.2+k0s');
    const stays = machineAt('w2', 'v1.36.2+k0s.0');
    expect(machineWayBack(sceneOf([moved, stays], [record])).version).toBe('v1.36.2+k0s.0');
    expect(() => machineWayBack(sceneOf([moved], [record]))).toThrow(
      'the record has v1.36.2+k0s, which its kubelet reported, but not the release of k0s',
    );
  });

  test('a topology goes back only if its Cluster switches the check of versions off', () => {
    const cluster = {
      metadata: {
        name: 'blue',
        namespace: 'prod',
        annotations: { [UNCHECKED_VERSION_ANNOTATION]: '' },
      },
    };
    const scene = sceneOf([C1, W1], [recordOf(C1, OLD), recordOf(W1, OLD)], { owner: TOPOLOGY });
    expect(() => machineWayBack(scene)).toThrow(/Cluster API refuses to lower it/);
    expect(machineWayBack({ ...scene, cluster }).patch).toEqual({
      spec: { topology: { version: OLD } },
    });
  });
});

const IN_POOL = { kind: 'MachineDeployment', name: 'pool' };
const OWNED: Machine = {
  ...W1,
  metadata: { ...W1.metadata, labels: { 'cluster.x-k8s.io/deployment-name': 'pool' } },
};
const BEFORE: NonNullable<NodeRolloutRun['before']> = [
  { role: 'worker', version: OLD, nodes: ['node-w1'] },
];

describe('the Machines of an owner were one plan', () => {
  test('the NodeRollout of the MachineDeployment says what a Machine ran', () => {
    const change = machineWayBack(
      sceneOf([OWNED], [recordOfOwner(IN_POOL, BEFORE)], { named: 'w1' }),
    );
    expect(change.moves).toMatchObject([{ to: OLD, note: 'ran this version before' }]);
  });

  test('the NodeRollout of the control plane says what a Machine ran', () => {
    const controller = {
      apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
      kind: 'KubeadmControlPlane',
      name: 'plane',
      uid: 'u',
      controller: true,
    };
    const machine = { ...C1, metadata: { ...C1.metadata, ownerReferences: [controller] } };
    const before = { role: 'controller' as const, version: OLD, nodes: ['node-c1'] };
    const record = recordOfOwner(controller, [before]);
    const scene = sceneOf([machine], [record], { owner: PLANE });
    expect(machineWayBack(scene).version).toBe(OLD);
  });

  test('an owner of another kind with the same name has other Machines', () => {
    const other = recordOfOwner({ ...IN_POOL, kind: 'KubeadmControlPlane' }, BEFORE);
    expect(() => machineWayBack(sceneOf([OWNED], [other]))).toThrow('no update of it');
  });

  test('of the record of the Machine and of its owner, the later update counts', () => {
    const started = '2026-02-01T00:00:00Z';
    const own = recordOf(OWNED, OLDER, { phase: 'failed' });
    const scene = sceneOf([OWNED], [own, recordOfOwner(IN_POOL, BEFORE, { started })]);
    expect(machineWayBack(scene)).toMatchObject({ version: OLD, first: [] });
    const earlier = sceneOf([OWNED], [own, recordOfOwner(IN_POOL, BEFORE)], { run: 'r1' });
    expect(machineWayBack(earlier).version).toBe(OLDER);
  });

  test('a Machine that was created after the update began ran no earlier version', () => {
    const metadata = { ...OWNED.metadata, creationTimestamp: '2026-03-01T00:00:00Z' };
    const others = [{ role: 'worker' as const, version: OLD, others: true as const, nodes: [] }];
    const record = recordOfOwner(IN_POOL, others);
    expect(machineWayBack(sceneOf([OWNED], [record])).version).toBe(OLD);
    expect(() => machineWayBack(sceneOf([{ ...OWNED, metadata }], [record]))).toThrow(
      'the record of run of-owner does not contain it',
    );
  });
});

test.each<[string, MachineScene, RegExp]>([
  [
    'nothing is recorded',
    sceneOf([W1], [], { named: 'w1' }),
    /the earlier version of Machine w1 is unknown: Refit has recorded no update of it to v1\.36\.3/,
  ],
  [
    'the run does not say what the node ran',
    sceneOf([W1], [recordOf(W1, undefined)], { named: 'w1' }),
    /the record of run r1 does not contain it/,
  ],
  [
    'there is no such run',
    sceneOf([W1], [recordOf(W1, OLD)], { named: 'w1', run: 'r9' }),
    /its NodeRollout has no run r9; it has r1/,
  ],
  [
    'the Machines ran different versions',
    sceneOf([W1, W2], [recordOf(W1, OLD), recordOf(W2, OLDER)]),
    /ran different versions before, and it has one version: v1\.36\.2 on w1; v1\.36\.1 on w2/,
  ],
  [
    'the version before is newer',
    sceneOf([W1], [recordOf(W1, MINOR)]),
    /v1\.37\.0 is newer: going back never upgrades a Machine/,
  ],
  [
    'the record was written by hand',
    sceneOf([W1], [recordOf(W1, `v1.36.2';reboot;'`)]),
    /which is not a version/,
  ],
  [
    'a control plane ran another minor version',
    sceneOf([machineAt('c1', MINOR, true)], [recordOf(machineAt('c1', MINOR, true), NEW)], {
      owner: PLANE,
    }),
    /the roll-back of Machine c1 to v1\.36\.3 is not possible: controllers cannot go back from v1\.37 to v1\.36/,
  ],
  [
    'the older kubelet is too old for the API server',
    sceneOf([machineAt('w1', MINOR)], [recordOf(machineAt('w1', MINOR), 'v1.33.0')], {
      servers: [MINOR],
    }),
    /a kubelet of v1\.33 is too old for the API server of v1\.37\.0/,
  ],
])('no change: %s', (_, scene, why) => {
  expect(() => machineWayBack(scene)).toThrow(why);
});

describe('what to do first, and what is lost', () => {
  const told = (more: Partial<MachineScene>): string => {
    const { first, lost } = machineWayBack(sceneOf([W1], [recordOf(W1, OLD)], more));
    return [...first, ...lost].join('\n');
  };

  test.each<[string, Partial<MachineScene>, string]>([
    [
      'Refit refuses a lower version',
      { extension: { metadata: { name: 'refit' }, spec: { settings: { partial: 'deny' } } } },
      `extensionconfigs.runtime.cluster.x-k8s.io refit --type=merge -p '{"spec":{"settings":{"allowedVersionRules":"Downgrade"}}}'`,
    ],
    ['the registration cannot be read', { extension: undefined }, 'could not read it'],
    [
      'the Cluster is paused',
      { cluster: { metadata: { name: 'blue', namespace: 'prod' }, spec: { paused: true } } },
      'Cluster prod/blue is paused',
    ],
    [
      'the last update failed',
      { rollouts: [recordOf(W1, OLD, { phase: 'failed' })] },
      'The last update of Machine w1 is recorded as failed, not as done.',
    ],
    [
      'the plan of the owner is not over',
      {
        machines: [OWNED, { ...W2, metadata: { ...OWNED.metadata, name: 'w2' } }],
        rollouts: [recordOfOwner(IN_POOL, BEFORE, { phase: 'failed' })],
      },
      'The last update of the Machines of MachineDeployment prod/pool is recorded as failed, not as done.',
    ],
    [
      'OnDelete',
      { owner: { ...POOL, rollout: { strategy: { type: 'OnDelete' } } } },
      'has the strategy OnDelete: no Machine goes back in place',
    ],
    [
      'the default of maxSurge',
      { owner: { ...POOL, rollout: {} } },
      'maxSurge of MachineDeployment pool is 1',
    ],
    [
      'one replica',
      { owner: { ...PLANE, replicas: 1 } },
      'KubeadmControlPlane plane has 1 replica: an update in place without a new Machine needs three',
    ],
  ])('%s', (_, more, sentence) => {
    expect(told(more)).toContain(sentence);
  });
});
