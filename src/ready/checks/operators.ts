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
import type { Asking } from '../asking.ts';
import type { Check } from '../context.ts';
import type { FoundBy } from '../finding.ts';

interface Custom extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

const MOST_REASONS = 3;

interface Operator {
  readonly resource: Resource<Custom>;
  /** What the operator does, as a sentence without its end. */
  readonly expect: (objects: readonly Custom[]) => string;
  readonly judge: (object: Custom) => Omit<FoundBy, 'object'> | undefined;
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
  {
    resource: of('longhorn.io/v1beta2', 'Volume'),
    keeps: selects('longhorn.io/component', 'instance-manager'),
    expect: (all) =>
      `Longhorn keeps its instance managers on a node until the ${counted(all.length, 'volume')} there are detached or healthy elsewhere, and then lets its budgets go`,
    judge: ({ spec = {}, status = {} }) => {
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
      // Longhorn also keeps the last replica of a volume that nothing uses now.
      if (spec['numberOfReplicas'] !== 1) return undefined;
      return {
        state: 'warning',
        message: `the volume has one replica, so the drain of its node does not end with the usual node-drain-policy of Longhorn${isAttached ? '' : ', although nothing uses the volume'}`,
        cure: 'add a replica, or set node-drain-policy to allow-if-replica-is-stopped',
      };
    },
  },
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
  { list }: Asking,
  { resource, expect, judge }: Operator,
): Promise<FoundBy[]> {
  const asked = await list(resource, { slim });
  if (asked.kind === 'unknown') return [{ state: 'unknown', message: asked.why }];
  if (asked.value.length === 0) return [];
  const found = asked.value.flatMap((object) => {
    const problem = judge(object);
    return problem === undefined ? [] : [{ object, problem }];
  });
  const groups = Map.groupBy(found, ({ problem: { state, message } }) => `${state} ${message}`);
  const problems = [...groups.values()].flatMap((group): FoundBy[] => {
    const [first] = group;
    const names = listed(group.map(({ object }) => keyOf(object)));
    return first === undefined ? [] : [{ ...first.problem, object: `${resource.kind} ${names}` }];
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
