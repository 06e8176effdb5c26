/** Judges the clusters of CloudNativePG. Its budgets allow no eviction of a primary, so it must move the primary first. */
import { isRecord, recordsIn } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { counted } from '../../util/phrases.ts';
import {
  isCount,
  isOwnedBy,
  type Judge,
  type Judged,
  type Operator,
  of,
  type Problem,
  unclear,
} from './operator.ts';

const clusters = of('postgresql.cnpg.io/v1', 'Cluster');
/** The name of the annotation that asks for hibernation, and of the condition that tells how far it is. */
const HIBERNATION = 'cnpg.io/hibernation';

export const CLOUDNATIVE_PG: Operator = {
  name: 'CloudNativePG',
  resource: clusters,
  noun: 'cluster',
  expect:
    'it moves a primary to a ready replica when its node is cordoned, which interrupts its connections for some seconds',
  judgeOf: async () => await Promise.resolve(judge),
  // CloudNativePG deletes the budget of a cluster that needs none. The check of drains judges a budget that is still there.
  keeps: (objects) =>
    isOwnedBy(
      clusters,
      objects?.filter(({ spec }) => !isRecord(spec) || !needsNoBudget(spec)),
    ),
};

const judge: Judge = ({ metadata: { annotations }, spec, status }) => {
  if (needsNoBudget(spec)) return undefined;
  if (ownMember(annotations, HIBERNATION) === 'on') {
    const hibernated = recordsIn(status['conditions']).find(({ type }) => type === HIBERNATION);
    // CloudNativePG first waits until the cluster is healthy, and then deletes its pods.
    if (hibernated?.['status'] === 'True') return undefined;
    if (hibernated === undefined)
      return unclear(
        'whether it still has a pod: it is to be hibernated, and CloudNativePG does not say how far that is',
      );
  }
  const instances = instancesOf(spec);
  if (instances === 1)
    return {
      state: 'blocker',
      message:
        'it has one instance, and CloudNativePG keeps a budget that never lets this instance go',
      cure: 'run a second instance, or set inProgress: true and reusePVC: true in spec.nodeMaintenanceWindow during the upgrade',
    };
  return isCount(instances)
    ? replicaProblem(instances, readyIn(status))
    : unclear('how many instances it has: spec.instances is no number');
};

/** Returns true if CloudNativePG keeps no budget for the primary. */
function needsNoBudget(spec: Judged['spec']): boolean {
  if (spec['enablePDB'] === false) return true;
  const window = spec['nodeMaintenanceWindow'];
  const isOpen =
    isRecord(window) && window['inProgress'] === true && (window['reusePVC'] ?? true) === true;
  return isOpen && instancesOf(spec) === 1;
}

function instancesOf(spec: Judged['spec']): unknown {
  return spec['instances'] ?? 1;
}

/** Returns the number of ready instances. CloudNativePG leaves out a zero, but always writes how many instances there are. */
function readyIn(status: Judged['status']): unknown {
  return status['readyInstances'] ?? (isCount(status['instances']) ? 0 : undefined);
}

function replicaProblem(instances: number, ready: unknown): Problem | undefined {
  if (instances < 1) return undefined;
  if (!isCount(ready))
    return unclear('whether a replica can become the primary: its status has no readyInstances');
  if (ready >= instances) return undefined;
  const some = `only ${ready} of its ${counted(instances, 'instance')} ${ready === 1 ? 'is' : 'are'} ready`;
  return ready <= 1
    ? {
        state: 'blocker',
        message: `${some}, so CloudNativePG has no replica to which it can move the primary, and its budget does not let the primary go`,
        cure: 'let a replica become ready first',
      }
    : {
        state: 'warning',
        message: `${some}, so a drain may wait until CloudNativePG has the others again`,
        cure: 'let all replicas become ready first',
      };
}
