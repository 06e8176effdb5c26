/** Judges the volumes of Longhorn. Its setting node-drain-policy decides whether a node with a last replica is drained. */
import { isText } from '../../util/json.ts';
import { printable } from '../../util/printable.ts';
import { answer, type ReadResult, unknown } from '../asking.ts';
import {
  type Custom,
  isCount,
  type Judge,
  type Operator,
  of,
  type Problem,
  selectedLabel,
  unclear,
} from './operator.ts';

const settings = of('longhorn.io/v1beta2', 'Setting');
const SETTING = 'node-drain-policy';
const USUAL = 'block-if-contains-last-replica';
const POLICIES: readonly string[] = [
  USUAL,
  'block-for-eviction',
  'block-for-eviction-if-contains-last-replica',
  'allow-if-replica-is-stopped',
  'always-allow',
];

export const LONGHORN: Operator = {
  name: 'Longhorn',
  resource: of('longhorn.io/v1beta2', 'Volume'),
  noun: 'volume',
  expect:
    'it keeps the budget of an instance manager until no volume is attached on the node, and until the volumes with a replica there are healthy elsewhere if node-drain-policy demands that',
  judgeOf: async ({ get }, [first]) =>
    judgeBy(policyIn(await get(settings, SETTING, first?.metadata.namespace))),
  keeps:
    (objects) =>
    (budget): boolean =>
      objects?.length !== 0 &&
      selectedLabel(budget, 'longhorn.io/component') === 'instance-manager',
};

function policyIn(read: ReadResult<Custom | undefined>): ReadResult<string> {
  if (read.kind === 'unknown') return read;
  if (read.value === undefined) return answer(USUAL);
  const { value } = read.value;
  return isText(value) && POLICIES.includes(value)
    ? answer(value)
    : unknown(
        `the setting ${SETTING} of Longhorn has the value ${printable(JSON.stringify(value) ?? 'undefined')}, which Refit does not know`,
      );
}

function judgeBy(drainPolicy: ReadResult<string>): Judge {
  return ({ spec, status: { state, robustness } }) => {
    const isAttached = state === 'attached';
    if (robustness === 'faulted')
      return isAttached
        ? { state: 'blocker', message: 'the volume is faulted', cure: 'repair the volume first' }
        : {
            state: 'warning',
            message:
              'the volume is faulted, so a drain of a node with one of its replicas may not end',
            cure: 'repair the volume first, or delete it',
          };
    if (isAttached && robustness === 'degraded')
      return {
        state: 'warning',
        message: 'the volume is degraded, so the drain waits for its last healthy replica',
        cure: 'let Longhorn rebuild its replicas first',
      };
    if (isAttached && robustness !== 'healthy')
      return unclear('whether the volume is healthy: Longhorn does not say so');
    const replicas = spec['numberOfReplicas'];
    if (!isCount(replicas))
      return unclear('how many replicas the volume has: spec.numberOfReplicas is no number');
    if (replicas !== 1)
      return drainPolicy.kind === 'answer' && drainPolicy.value === 'block-for-eviction'
        ? {
            state: 'warning',
            message:
              'with the node-drain-policy block-for-eviction the drain of a node waits until Longhorn has copied each replica on it to another node',
            cure: 'check that other nodes have room for them, and allow the drain enough time',
          }
        : undefined;
    return drainPolicy.kind === 'unknown'
      ? unclear(`whether the drain of the node with its only replica ends: ${drainPolicy.why}`)
      : lastReplicaProblem(drainPolicy.value, isAttached);
  };
}

/** Says what happens to the only replica of a volume, by the setting node-drain-policy of Longhorn. */
function lastReplicaProblem(drainPolicy: string, isAttached: boolean): Problem | undefined {
  const withPolicy = `the volume has one replica, and with the node-drain-policy ${drainPolicy}`;
  // Only the Replica itself shows whether a volume was ever used. Longhorn lets one that was not used go.
  const ifUsed = isAttached ? '' : ' if the volume has ever been used';
  if (drainPolicy.startsWith('block-for-eviction'))
    return {
      state: 'warning',
      message: `${withPolicy} the drain of its node waits until Longhorn has copied it to another node${drainPolicy === 'block-for-eviction' ? '' : ifUsed}`,
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
    state: isAttached ? 'blocker' : 'warning',
    message: `${withPolicy} the drain of its node does not end${ifUsed}`,
    cure: 'add a replica, or set node-drain-policy to allow-if-replica-is-stopped',
  };
}
