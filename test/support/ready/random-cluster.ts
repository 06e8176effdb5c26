/** Makes clusters at random, with nodes and workloads whose rules keep some pods from some nodes. */
import { pick, seededRandom } from '../../faults/random.ts';

export interface RandomWorkload {
  readonly name: string;
  readonly count: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: object;
}

export interface RandomCluster {
  readonly nodes: readonly object[];
  readonly workloads: readonly RandomWorkload[];
}

const ZONE = 'topology.kubernetes.io/zone';
const HOST = 'kubernetes.io/hostname';

interface Random {
  /** Returns a whole number between both, including both. */
  readonly between: (least: number, most: number) => number;
  /** Returns true with this probability. */
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(from: readonly T[]) => T;
}

function randomFrom(seed: number): Random {
  const next = seededRandom(seed);
  return {
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    chance: (probability) => next() < probability,
    pick: (from) => pick(next, from),
  };
}

/** Returns the same cluster for the same seed. The names of its nodes begin with `prefix`. */
export function randomCluster(seed: number, prefix: string): RandomCluster {
  const random = randomFrom(seed);
  const size = random.between(3, 6);
  const nodes = Array.from({ length: size }, (_each, index) => node(random, `${prefix}-${index}`));
  const names = Array.from({ length: random.between(2, 6) }, (_each, index) => `app${index}`);
  return { nodes, workloads: names.map((name) => workload(random, name, names)) };
}

function node(random: Random, name: string): object {
  const zone = random.chance(0.85) ? { [ZONE]: random.pick(['a', 'b', 'c']) } : {};
  const disk = random.chance(0.5) ? { disk: 'ssd' } : {};
  const taints = random.chance(0.2)
    ? [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }]
    : [];
  const allocatable = {
    cpu: String(random.between(1, 6)),
    memory: `${random.between(2, 12)}Gi`,
    pods: String(random.pick([4, 10, 110])),
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: { [HOST]: name, ...zone, ...disk },
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
    },
    spec: { taints },
    status: { allocatable, capacity: allocatable },
  };
}

function workload(random: Random, name: string, names: readonly string[]): RandomWorkload {
  const labels = { app: name };
  const own = { labelSelector: { matchLabels: labels } };
  const other = { labelSelector: { matchLabels: { app: random.pick(names) } } };
  const affinity = {
    ...(random.chance(0.2) && {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: ZONE, operator: random.pick(['In', 'NotIn']), values: ['a', 'b'] },
              ],
            },
          ],
        },
      },
    }),
    ...(random.chance(0.15) && {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { ...other, topologyKey: random.pick([ZONE, HOST]) },
        ],
      },
    }),
    ...(random.chance(0.3) && {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { ...(random.chance(0.7) ? own : other), topologyKey: random.pick([ZONE, HOST, HOST]) },
        ],
      },
    }),
  };
  const spread = {
    ...own,
    maxSkew: random.between(1, 2),
    topologyKey: random.pick([ZONE, HOST]),
    whenUnsatisfiable: 'DoNotSchedule',
    ...(random.chance(0.2) && { minDomains: 3 }),
    ...(random.chance(0.2) && { nodeTaintsPolicy: 'Honor' }),
  };
  const requests = {
    cpu: `${random.pick([100, 250, 500, 1000, 2500])}m`,
    ...(random.chance(0.5) && { memory: `${random.pick([128, 512, 2048])}Mi` }),
  };
  const ports = random.chance(0.15)
    ? [{ containerPort: 80, hostPort: random.pick([8080, 9090]) }]
    : [];
  return {
    name,
    count: random.between(1, 4),
    labels,
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'example.com/none', resources: { requests }, ports }],
      ...(random.chance(0.2) && { nodeSelector: { disk: 'ssd' } }),
      ...(random.chance(0.3) && { tolerations: [{ key: 'dedicated', operator: 'Exists' }] }),
      ...(Object.keys(affinity).length > 0 && { affinity }),
      ...(random.chance(0.25) && { topologySpreadConstraints: [spread] }),
    },
  };
}
