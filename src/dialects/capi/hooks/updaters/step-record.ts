/**
 * Records which updaters accepted a change. During the update of a Machine, it also records which updaters take part and how
 * many of them are done.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import type { UpdateMachineRequest } from '../../../../api/capi/hooks.ts';
import {
  type Machine,
  machineDeployments,
  machines,
  SET_LABELS,
} from '../../../../api/capi/machine.ts';
import type { Updater, UpdaterSet } from '../../../../api/refit/updater-set.ts';
import type { KubeObject } from '../../../../kube/resources.ts';
import { isConflict } from '../../../../kube/status-error.ts';
import { unlessError } from '../../../../util/errors.ts';
import { isRecord, parseJson, stableStringify } from '../../../../util/json.ts';
import { ownMember } from '../../../../util/own-member.ts';
import { type CanRequest, compared, MACHINE_SHAPE } from '../can-update.ts';
import type { CallParts } from './updater-sets.ts';

/**
 * The annotation with the record. If a user removes it, the next call starts again with the updaters that the
 * UpdaterSet has at that time.
 */
export const STEPS_ANNOTATION = 'upgrade.refit.dev/updater-steps';

const acceptedSchema = z.object({
  /**
   * The name of the UpdaterSet. It is absent if no UpdaterSet selects the Machine. In this case, Refit updates the
   * Machine without other updaters.
   */
  set: z.string().exactOptional(),
  /** The names of the updaters, in order. If the UpdaterSet is changed later, this list keeps all its names. */
  steps: z.array(z.string()).min(1),
});

const recordSchema = acceptedSchema.extend({
  /**
   * A digest of the Machine and its desired objects. A record with another digest belongs to another update and is
   * ignored. The digest is empty before the first call.
   */
  id: z.string(),
  done: z.int().min(0),
});

/** The record on a MachineDeployment. Each key is the hash of the MachineSet to which the Machines move. */
const acceptedSets = z.record(z.string(), acceptedSchema);

export type Accepted = z.infer<typeof acceptedSchema>;
export type StepRecord = z.infer<typeof recordSchema>;

/**
 * The most MachineSets in a record. A MachineDeployment rolls out one MachineSet at a time, and only a few earlier
 * rollouts may still be unfinished.
 */
const MOST = 10;

export function acceptedBy({ metadata }: UpdaterSet, updaters: readonly Updater[]): Accepted {
  return { set: metadata.name, steps: updaters.map(({ name }) => name) };
}

/**
 * Records which updaters accepted the change. The record must be written before the answer, because the UpdaterSet may be
 * changed or deleted before UpdateMachine is called.
 */
export async function recordAccepted(
  parts: CallParts,
  request: CanRequest,
  set: UpdaterSet,
  updaters: Updater[],
) {
  const { management, abort } = parts;
  const accepted = acceptedBy(set, updaters);
  const { machine } = request.current;
  const { metadata } = machine ?? request.desired['machineSet'] ?? { metadata: { name: '' } };
  const options = { type: 'merge', namespace: metadata.namespace ?? 'default', abort } as const;
  if (machine) {
    const record: StepRecord = { ...accepted, id: '', done: 0 };
    const patch = { metadata: { annotations: { [STEPS_ANNOTATION]: JSON.stringify(record) } } };
    await management.patch(machines, machine.metadata.name, patch, options);
    return;
  }
  const { [SET_LABELS.deployment]: deployment, [SET_LABELS.hash]: hash } = metadata.labels ?? {};
  if (!deployment || !hash)
    throw new Error(`MachineSet ${metadata.name} lacks a label of a MachineDeployment`);
  const owner = await management.get(machineDeployments, deployment, options);
  const sets = acceptedOn(owner);
  const before = ownMember(sets, hash);
  const others = Object.entries(sets).filter(([other]) => other !== hash);
  // The Machines that move to this MachineSet come from several other MachineSets. The Machines of each of them may
  // need other updaters, so the updaters that were recorded before stay in the record. An updater that the UpdaterSet
  // no longer has is the first in the list, so that the update fails at once.
  const earlier = before?.set === set.metadata.name ? before.steps : [];
  const place = (step: string): number => set.spec.updaters.findIndex(({ name }) => name === step);
  const steps = [...new Set([...earlier, ...accepted.steps])].toSorted(
    (one, other) => place(one) - place(other),
  );
  const entries: [string, Accepted][] = [...others, [hash, { ...accepted, steps }]];
  const annotations = {
    [STEPS_ANNOTATION]: JSON.stringify(Object.fromEntries(entries.slice(-MOST))),
  };
  const patch = { metadata: { resourceVersion: owner.metadata.resourceVersion, annotations } };
  await management.patch(machineDeployments, deployment, patch, options);
}

/**
 * Returns the updaters that accepted the change of this Machine, or of all Machines of its MachineSet. Returns
 * undefined if nothing is recorded, because Refit alone accepted the change.
 */
export async function acceptedOf(
  { management, abort }: CallParts,
  machine: Machine,
): Promise<Accepted | undefined> {
  const own = recordOn(machine, '');
  if (own) return own;
  const { namespace, labels = {} } = machine.metadata;
  const { [SET_LABELS.deployment]: deployment, [SET_LABELS.hash]: hash = '' } = labels;
  if (!deployment) return undefined;
  const owner = await management.get(machineDeployments, deployment, { namespace, abort });
  return ownMember(acceptedOn(owner), hash);
}

function acceptedOn({ metadata }: KubeObject): z.infer<typeof acceptedSets> {
  return acceptedSets.safeParse(parseJson(metadata.annotations?.[STEPS_ANNOTATION])).data ?? {};
}

/**
 * Writes the record to the Machine, or removes it if `record` is undefined. Resolves with undefined after a conflict; the next
 * call reads the Machine again.
 */
export async function saved(
  { management, abort }: CallParts,
  { metadata }: KubeObject,
  record?: StepRecord,
) {
  const { name, namespace, resourceVersion } = metadata;
  const annotations = { [STEPS_ANNOTATION]: record ? JSON.stringify(record) : null };
  const patch = { metadata: { resourceVersion, annotations } };
  return await unlessError(isConflict)(
    management.patch(machines, name, patch, { type: 'merge', namespace, abort }),
  );
}

export function recordOn({ metadata }: KubeObject, id: string): StepRecord | undefined {
  const { data } = recordSchema.safeParse(parseJson(metadata.annotations?.[STEPS_ANNOTATION]));
  // Refit removes a record after all its updaters are done. So if all updaters in a record are done, somebody else has
  // written the record.
  return data?.id === id && data.done < data.steps.length ? data : undefined;
}

export function idOf(
  { metadata: { uid } }: Machine,
  desired: UpdateMachineRequest['desired'],
): string {
  const specs = MACHINE_SHAPE.parts.map((part) =>
    compared(MACHINE_SHAPE, part, desired[part.object as keyof typeof desired]),
  );
  return hash('sha256', stableStringify([uid, ...specs.map(withoutDiscovery)])).slice(0, 16);
}

/**
 * Returns the spec without the discovery of a worker, because the token in the discovery may change during the update.
 */
function withoutDiscovery(spec: unknown): unknown {
  if (!isRecord(spec) || !isRecord(spec['joinConfiguration'])) return spec;
  const { discovery: _token, ...join } = spec['joinConfiguration'];
  return { ...spec, joinConfiguration: join };
}
