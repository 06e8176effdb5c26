/**
 * Judges the virtual machines of KubeVirt by their eviction strategies. KubeVirt refuses the eviction of a virtual machine
 * that must not stop. Older versions also keep a budget for it.
 */
import { isRecord, recordsIn } from '../../util/json.ts';
import { printable } from '../../util/printable.ts';
import { scalarText } from '../../util/scalar-text.ts';
import { answer, type ReadResult, unknown } from '../asking.ts';
import {
  type Custom,
  isOwnedBy,
  type Judge,
  type Judged,
  type Operator,
  of,
  type Problem,
  slim,
  unclear,
} from './operator.ts';

const instances = of('kubevirt.io/v1', 'VirtualMachineInstance');
const kubeVirts = of('kubevirt.io/v1', 'KubeVirt');
const NONE = 'None';
/** The phases in which nothing of a virtual machine runs any more. */
const ENDED: readonly unknown[] = ['Succeeded', 'Failed'];

export const KUBEVIRT: Operator = {
  name: 'KubeVirt',
  resource: instances,
  noun: 'virtual machine',
  expect:
    'it migrates those with the eviction strategy LiveMigrate, or LiveMigrateIfPossible if they can be migrated; a drain waits for the migrations',
  judgeOf: async ({ list }) => judgeBy(usualStrategy(await list(kubeVirts, { slim }))),
  keeps: (objects) => isOwnedBy(instances, objects),
};

/** Returns the strategy of the virtual machines that have none of their own. */
function usualStrategy(asked: ReadResult<readonly Custom[]>): ReadResult<unknown> {
  if (asked.kind === 'unknown') return asked;
  const strategies = new Set<unknown>();
  for (const { spec = {} } of asked.value) {
    const configuration = isRecord(spec) ? (spec['configuration'] ?? {}) : undefined;
    if (!isRecord(configuration)) return unknown('the configuration of KubeVirt is no object');
    strategies.add(configuration['evictionStrategy'] ?? NONE);
  }
  if (strategies.size > 1)
    return unknown('several objects of the kind KubeVirt have different eviction strategies');
  const [strategy = NONE] = strategies;
  return answer(strategy);
}

function judgeBy(usual: ReadResult<unknown>): Judge {
  return ({ spec, status }) => {
    if (ENDED.includes(status['phase'])) return undefined;
    const own = spec['evictionStrategy'] ?? undefined;
    if (own === undefined && usual.kind === 'unknown')
      return unclear(`which eviction strategy it has: ${usual.why}`);
    const strategy = own ?? (usual.kind === 'answer' ? usual.value : NONE);
    const from = own === undefined ? ', which the configuration of KubeVirt sets,' : '';
    switch (strategy) {
      case NONE:
      case 'LiveMigrateIfPossible':
        return undefined;
      case 'LiveMigrate':
        return migrationProblem(status, from);
      case 'External':
        return {
          state: 'warning',
          message: `with the eviction strategy External${from} KubeVirt refuses its eviction, so the drain of its node ends only after somebody else has moved or deleted it`,
          cure: 'check that a program does so when its status has an evacuationNodeName, or shut it down before its node is drained',
        };
      default:
        return unclear(
          `whether its node can be drained: Refit does not know the eviction strategy ${printable(JSON.stringify(strategy))}`,
        );
    }
  };
}

function migrationProblem(status: Judged['status'], from: string): Problem | undefined {
  const migratable = recordsIn(status['conditions']).find(({ type }) => type === 'LiveMigratable');
  if (migratable?.['status'] === 'True') return undefined;
  if (migratable?.['status'] !== 'False')
    return unclear('whether it can be migrated: KubeVirt does not say so');
  const why = printable(scalarText(migratable['message']));
  return {
    state: 'blocker',
    message: `by the eviction strategy LiveMigrate${from} it must be migrated before its node is drained, and cannot be: ${why || 'KubeVirt gives no reason'}`,
    cure: 'make it migratable, or shut it down before its node is drained',
  };
}
