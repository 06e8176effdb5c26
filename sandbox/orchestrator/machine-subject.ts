/** Stores the state of a run in an annotation of its Machine, and writes each step to the Machine's spec. */
import type { Triple } from '../../src/api/capi/hooks.ts';
import { type Machine, machines } from '../../src/api/capi/machine.ts';
import { differences, valueAt, withChange } from '../../src/dialects/capi/json-diff.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Json, sameJson } from '../../src/util/json.ts';
import type { Run } from './run.ts';
import type { Subject } from './runner.ts';

const RUN_ANNOTATION = 'upgrade.refit.dev/machine-run';

/**
 * Every write has the resourceVersion that was read, so if two processes carry out one run, one of them stops. Only the
 * Machine is written; the other two objects belong to providers.
 */
export async function machineSubject(client: KubeClient, name: string, namespace: string): Promise<Subject> {
  let machine = await client.get(machines, name, { namespace });
  const replace = async (next: Machine): Promise<void> => {
    if (!sameJson(next, machine)) machine = await client.replace(machines, next);
  };
  return {
    load: async () => await Promise.resolve(runOn(machine)),
    async save(run) {
      const annotations = { ...machine.metadata.annotations, [RUN_ANNOTATION]: JSON.stringify(run) };
      await replace({ ...machine, metadata: { ...machine.metadata, annotations } });
    },
    async write(desired) {
      await replace(withSpec(machine, desired));
    },
  };
}

function withSpec(machine: Machine, desired: Triple): Machine {
  const changes = differences(valueAt(machine, ['spec']), valueAt(desired['machine'], ['spec']));
  const written = changes.reduce<Json | undefined>(
    (value, change) => withChange(value, { ...change, path: ['spec', ...change.path] }),
    machine as unknown as Json,
  );
  return written as unknown as Machine;
}

/** Undefined if the annotation is absent or not JSON. */
function runOn({ metadata }: Machine): Run | undefined {
  try {
    return (JSON.parse(metadata.annotations?.[RUN_ANNOTATION] ?? 'null') as Run | undefined) ?? undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
