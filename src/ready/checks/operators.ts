/**
 * Checks the operators of databases, volumes and virtual machines that act when a node is cordoned or drained, and whether
 * their settings let a drain end.
 */
import {
  type KubeObject,
  keyOf,
  namespaced,
  type PodDisruptionBudget,
  type Resource,
} from '../../kube/resources.ts';
import { isRecord } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { counted, listed } from '../../util/phrases.ts';
import { printable } from '../../util/printable.ts';
import { scalarText } from '../../util/scalar-text.ts';
import { type Asking, answer, type ReadResult } from '../asking.ts';
import type { Check } from '../context.ts';
import type { FoundBy } from '../finding.ts';

interface Custom extends KubeObject {
  readonly value?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

const MOST_REASONS = 3;

interface Operator {
  readonly resource: Resource<Custom>;
  /** What the operator does, as a sentence without its end. */
  readonly expect: (objects: readonly Custom[]) => string;
  /** The second parameter is the value of `setting` below; undefined if nobody has set it. */
  readonly judge: (
    object: Custom,
    setting: ReadResult<string | undefined>,
  ) => Omit<FoundBy, 'object'> | undefined;
  /** The object beside the others whose field `value` changes the judgement. */
  readonly setting?: { readonly resource: Resource<Custom>; readonly name: string };
  /** Returns true for a budget that the operator keeps, and whose pods it moves when their node is cordoned. */
  readonly keeps?: (budget: PodDisruptionBudget) => boolean;
}

const of = (apiVersion: string, kind: string, plural?: string): Resource<Custom> =>
  namespaced<Custom>(apiVersion, kind, plural);

const isOwnedBy =
  (group: string, kind: string) =>
  ({ metadata: { ownerReferences = [] } }: PodDisruptionBudget): boolean =>
    ownerReferences.some(
      (owner) => owner.kind === kind && owner.apiVersion.startsWith(`${group}/`),
    );

const selects =
  (label: string, value?: string) =>
  ({ spec }: PodDisruptionBudget): boolean => {
    const found = ownMember(spec?.selector?.matchLabels ?? {}, label);
    return found !== undefined && (value === undefined || found === value);
  };

const LONGHORN: Operator = {
  resource: of('longhorn.io/v1beta2', 'Volume'),
  keeps: selects('longhorn.io/component', 'instance-manager'),
  setting: { resource: of('longhorn.io/v1beta2', 'Setting'), name: 'node-drain-policy' },
  expect: (all) =>
    `Longhorn keeps its instance managers on a node until the ${counted(all.length, 'volume')} there are detached or healthy elsewhere, and then lets its budgets go`,
  judge: ({ spec = {}, status = {} }, drainPolicy) => {
    const { robustness } = status as { readonly robustness?: unknown };
    const isAttached = status['state'] === 'attached';
    if (isAttached && robustness === 'faulted')
      return {
        state: 'blocker',
        message: 'the volume is faulted',
        cure: 'repair the volume first',
      };
    if (isAttached && robustness === 'degraded')
      return {
        state: 'warning',
        message: 'the volume is degraded, so the drain waits for its last healthy replica',
        cure: 'let Longhorn rebuild its replicas first',
      };
    if (spec['numberOfReplicas'] !== 1) return undefined;
    return drainPolicy.kind === 'unknown'
      ? {
          state: 'unknown',
          message: `whether the drain of the node with its only replica ends: ${drainPolicy.why}`,
        }
      : lastReplicaFinding(drainPolicy.value ?? 'block-if-contains-last-replica', isAttached);
  },
};

/** Says what happens to the only replica of a volume, by the setting node-drain-policy of Longhorn. */
function lastReplicaFinding(
  drainPolicy: string,
  isAttached: boolean,
): Omit<FoundBy, 'object'> | undefined {
  const withPolicy = `the volume has one replica, and with the node-drain-policy ${printable(drainPolicy)}`;
  if (drainPolicy.startsWith('block-for-eviction'))
    return {
      state: 'warning',
      message: `${withPolicy} the drain of its node waits until Longhorn has copied it to another node`,
      cure: 'check that another node has room for it, and allow the drain enough time',
    };
  // The pods of the volume leave before, so its replica stops.
  if (drainPolicy === 'allow-if-replica-is-stopped') return undefined;
  if (drainPolicy === 'always-allow')
    return isAttached
      ? {
          state: 'warning',
          message: `${withPolicy} its node may restart while the replica is in use, which may damage the data`,
          cure: 'add a replica, or set node-drain-policy to allow-if-replica-is-stopped',
        }
      : undefined;
  return {
    // Only the Replica itself shows whether a volume was never used. Such a volume holds no drain.
    state: isAttached ? 'blocker' : 'warning',
    message: `${withPolicy} the drain of its node does not end${isAttached ? '' : ', although nothing uses the volume'}`,
    cure: 'add a replica, or set node-drain-policy to allow-if-replica-is-stopped',
  };
}

const OPERATORS: readonly Operator[] = [
  {
    resource: of('postgresql.cnpg.io/v1', 'Cluster'),
    keeps: isOwnedBy('postgresql.cnpg.io', 'Cluster'),
    expect: (all) =>
      `CloudNativePG moves the primary of each of the ${counted(all.length, 'cluster')} away when its node is cordoned, which interrupts its connections for some seconds`,
    judge: ({ spec = {} }) => {
      const isAlone = (spec['instances'] ?? 1) === 1;
      const window = spec['nodeMaintenanceWindow'];
      const isOpen = isRecord(window) && window['inProgress'] === true;
      if (!isAlone || isOpen || spec['enablePDB'] === false) return undefined;
      return {
        state: 'blocker',
        message:
          'it has one instance, and CloudNativePG keeps a budget that never lets this instance go',
        cure: 'run a second instance, or set spec.nodeMaintenanceWindow.inProgress: true during the upgrade',
      };
    },
  },
  {
    resource: of('acid.zalan.do/v1', 'postgresql'),
    // The operator writes an owner into its budgets only if its configuration says so.
    keeps: selects('spilo-role'),
    expect: (all) =>
      `the Postgres operator of Zalando moves the primary of each of the ${counted(all.length, 'cluster')} away from a node that loses its readiness label, or lets Patroni elect another one`,
    judge: ({ spec = {} }) =>
      spec['numberOfInstances'] === 1
        ? {
            state: 'blocker',
            message:
              'it has one instance, and the budget of its primary never lets this instance go',
            cure: 'run a second instance, or set enable_pod_disruption_budget: false of the operator during the upgrade',
          }
        : undefined,
  },
  LONGHORN,
  {
    resource: of('kubevirt.io/v1', 'VirtualMachineInstance'),
    keeps: isOwnedBy('kubevirt.io', 'VirtualMachineInstance'),
    expect: (all) =>
      `KubeVirt migrates each of the ${counted(all.length, 'virtual machine')} with the eviction strategy LiveMigrate; a drain waits for the migration`,
    judge: ({ spec = {}, status = {} }) => {
      const strategy = spec['evictionStrategy'];
      if (strategy !== 'LiveMigrate') return undefined;
      const conditions = Array.isArray(status['conditions']) ? status['conditions'] : [];
      const migratable = conditions.find(
        (each) => isRecord(each) && each['type'] === 'LiveMigratable',
      ) as { readonly status?: unknown; readonly message?: unknown } | undefined;
      if (migratable?.status !== 'False') return undefined;
      return {
        state: 'blocker',
        message: `it must be migrated before its node is drained, and cannot be: ${scalarText(migratable.message) || 'KubeVirt gives no reason'}`,
        cure: 'make it migratable, or shut it down before its node is drained',
      };
    },
  },
  {
    resource: of('ceph.rook.io/v1', 'CephCluster'),
    expect: () =>
      'Rook lets the OSDs of one failure domain go at a time, and blocks the others until the placement groups are clean',
    judge: ({ status = {} }) => {
      const ceph = status['ceph'];
      const health = isRecord(ceph) ? ceph['health'] : undefined;
      const why = cephReasons(ceph);
      if (health === 'HEALTH_ERR')
        return {
          state: 'blocker',
          message: `Ceph reports HEALTH_ERR${why}`,
          cure: 'repair Ceph first',
        };
      if (health === 'HEALTH_WARN')
        return {
          state: 'warning',
          message: `Ceph reports HEALTH_WARN${why}: if placement groups are not clean, its budgets let no further node go`,
          cure: 'read `ceph health detail` first',
        };
      return undefined;
    },
  },
];

/** Returns the health checks of Ceph that fail, in parentheses. Rook writes them into the status, each with its message. */
function cephReasons(ceph: unknown): string {
  const details = isRecord(ceph) && isRecord(ceph['details']) ? ceph['details'] : {};
  const reasons = Object.entries(details).map(([code, detail]) => {
    const message = isRecord(detail) ? scalarText(detail['message']) : '';
    return printable(message === '' ? code : `${code}: ${message}`);
  });
  return reasons.length === 0 ? '' : ` (${listed(reasons, MOST_REASONS)})`;
}

export const checkOperators: Check = async (asking) => {
  const all = await Promise.all(OPERATORS.map(async (each) => await askOperator(asking, each)));
  const findings = all.flat();
  if (findings.length > 0) return findings;
  return [{ state: 'ok', message: 'no operator that acts on a cordon was found' }];
};

/**
 * Resolves with a function that returns true for a budget of a running operator. Such a budget allows no eviction until its
 * operator has seen the cordon, so only the check of operators can judge it.
 */
export async function budgetsOfOperators({
  list,
}: Pick<Asking, 'list'>): Promise<(budget: PodDisruptionBudget) => boolean> {
  const present = await Promise.all(
    OPERATORS.map(async ({ resource, keeps }) => {
      if (keeps === undefined) return [];
      const asked = await list(resource, { slim });
      // A budget without such objects is a leftover of an operator that is gone.
      return asked.kind === 'unknown' || asked.value.length > 0 ? [keeps] : [];
    }),
  );
  const kept = present.flat();
  return (budget) => kept.some((keeps) => keeps(budget));
}

async function askOperator(
  { list, get }: Asking,
  { resource, expect, judge, setting }: Operator,
): Promise<FoundBy[]> {
  const asked = await list(resource, { slim });
  if (asked.kind === 'unknown') return [{ state: 'unknown', message: asked.why }];
  const [first] = asked.value;
  if (first === undefined) return [];
  const { namespace } = first.metadata;
  const read = setting && (await get(setting.resource, setting.name, namespace));
  const set = read?.kind === 'unknown' ? read : answer(read?.value?.value);
  const found = asked.value.flatMap((object) => {
    const problem = judge(object, set);
    return problem === undefined ? [] : [{ object, problem }];
  });
  const groups = Map.groupBy(found, ({ problem: { state, message } }) => `${state} ${message}`);
  const problems = [...groups.values()].flatMap((group): FoundBy[] => {
    const names = listed(group.map(({ object }) => keyOf(object)));
    return group
      .slice(0, 1)
      .map(({ problem }) => ({ ...problem, object: `${resource.kind} ${names}` }));
  });
  return [...problems, { state: 'ok', message: expect(asked.value) }];
}

/** Keeps what the checks read of an object. */
function slim({ metadata: { name, namespace }, spec, status }: Custom): Custom {
  return {
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    ...(spec !== undefined && { spec }),
    ...(status !== undefined && { status }),
  };
}
