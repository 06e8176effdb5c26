/** Answers UpdateMachine: calls the updaters of an UpdaterSet one after the other. What is done is recorded on the Machine. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { UpdateMachineRequest, UpdateMachineResponse } from '../../../api/capi/hooks.ts';
import { type Machine, machines } from '../../../api/capi/machine.ts';
import type { Updater, UpdaterSet } from '../../../api/refit/updater-set.ts';
import { isConflict } from '../../../kube/status-error.ts';
import { messageOf } from '../../../util/errors.ts';
import { isRecord, parseJson, stableStringify } from '../../../util/json.ts';
import { compared, isDisabled, MACHINE_SHAPE } from '../can-update.ts';
import { DONE, failure, orUndefined, type UpdateParts, underWay, updateMachine } from '../update-machine.ts';
import type { CanParts } from './answer-can.ts';
import type { UpdaterAnswer } from './updater-client.ts';
import { listSets, setFor, updatersFor } from './updater-sets.ts';

export type StepParts = UpdateParts & CanParts;

/** Removing it ends the steps: the next call begins with those of the UpdaterSet as it is then. */
export const STEPS_ANNOTATION = 'upgrade.refit.dev/updater-steps';

const recordSchema = z.object({
  /** Of the Machine and its desired objects, so that the record of another update does not count. */
  id: z.string(),
  set: z.string(),
  /** Names of the updaters, in order. Later changes of the UpdaterSet take none away. */
  steps: z.array(z.string()).min(1),
  /** How many of them have answered that they are done. */
  done: z.int().min(0),
});

type StepRecord = z.infer<typeof recordSchema>;

/** Seconds: an updater must not put a Machine off for years. */
const LONGEST_RETRY = 300;

/** Calls at most one updater. Idempotent, on any replica. Done means that each updater has said so itself. */
export async function updateInSteps(
  parts: StepParts,
  request: UpdateMachineRequest,
  abort: AbortSignal,
): Promise<UpdateMachineResponse> {
  const { settings, desired } = request;
  if (isDisabled(settings)) return failure('in-place updates are disabled by the setting disableInPlaceUpdates');
  const { name, namespace = 'default' } = desired.machine.metadata;
  const title = `Machine ${namespace}/${name}`;
  const machine = await orUndefined(parts.management.get(machines, name, { namespace, abort }));
  if (!machine) return failure(`${title} does not exist`);
  // The body is not trusted, since anybody can send one: only the Machine in the API counts.
  const [live, asked] = [machine.spec?.version, versionIn(desired.machine.spec)];
  if (live !== asked)
    return failure(`${title} has spec.version ${live ?? 'no version'}, but the call asks for ${asked ?? 'none'}`);
  const sets = await listSets(parts.management, { abort });
  const record = recordOn(machine, idOf(machine, desired));
  const set = record
    ? sets.find((each) => each.metadata.name === record.set)
    : setFor(sets, machine.metadata.labels ?? {});
  if (record) return await takeStep(parts, machine, record, set, request, abort);
  if (!set) return await updateMachine(parts, request, machine, abort);
  return await beginSteps(parts, machine, set, request, abort);
}

function versionIn(spec: unknown): string | undefined {
  const version = isRecord(spec) ? spec['version'] : undefined;
  return typeof version === 'string' ? version : undefined;
}

async function beginSteps(
  parts: StepParts,
  machine: Machine,
  set: UpdaterSet,
  request: UpdateMachineRequest,
  abort: AbortSignal,
): Promise<UpdateMachineResponse> {
  const { name } = set.metadata;
  const steps = updatersFor(set, machine.metadata.labels ?? {}).map((updater) => updater.name);
  if (steps.length === 0) return failure(`UpdaterSet ${name} has no updater for the labels of this Machine`);
  const record = { id: idOf(machine, request.desired), set: name, steps, done: 0 };
  return await saved(
    parts,
    machine,
    record,
    abort,
    async (next) => await takeStep(parts, next, record, set, request, abort),
  );
}

/** The record says which updater is called, before it is. */
async function takeStep(
  parts: StepParts,
  machine: Machine,
  record: StepRecord,
  set: UpdaterSet | undefined,
  request: UpdateMachineRequest,
  abort: AbortSignal,
): Promise<UpdateMachineResponse> {
  const { steps, done } = record;
  const name = steps[done] ?? '';
  const updater = set?.spec.updaters.find((each) => each.name === name);
  if (!updater)
    return failure(
      `updater ${name} is to update this Machine, but UpdaterSet ${record.set} no longer has it: put it back, or remove the annotation ${STEPS_ANNOTATION} of the Machine to continue without it`,
    );
  const answer = await answerOf(parts, updater, machine, request, abort);
  if (answer instanceof Error) return underWay(`waiting for updater ${name}: ${answer.message}`);
  const { status, message = 'without a message', retryAfterSeconds = 0 } = answer;
  const words = `updater ${name}: ${message}`;
  if (status === 'Failure') return failure(words);
  if (retryAfterSeconds > 0)
    return { ...underWay(words), retryAfterSeconds: Math.min(retryAfterSeconds, LONGEST_RETRY) };
  const isLast = done + 1 === steps.length;
  // Without a record, no call can be answered before every updater has been called again.
  return await saved(
    parts,
    machine,
    isLast ? undefined : { ...record, done: done + 1 },
    abort,
    async () => await Promise.resolve(isLast ? DONE : underWay(`updater ${name} is done, ${steps[done + 1]} is next`)),
  );
}

/** An Error if it gave no valid answer. */
async function answerOf(
  parts: StepParts,
  updater: Updater,
  machine: Machine,
  { desired }: UpdateMachineRequest,
  abort: AbortSignal,
): Promise<UpdaterAnswer | Error> {
  if (updater.refit) return await updateMachine(parts, { settings: updater.settings, desired }, machine, abort);
  try {
    return await parts.callUpdater(updater, 'UpdateMachine', { desired }, abort);
  } catch (error) {
    return new Error(messageOf(error), { cause: error });
  }
}

/** Nothing follows if somebody else wrote the Machine: the next call reads it again. */
async function saved(
  { management }: StepParts,
  { metadata: { name, namespace, resourceVersion } }: Machine,
  record: StepRecord | undefined,
  abort: AbortSignal,
  then: (machine: Machine) => Promise<UpdateMachineResponse>,
): Promise<UpdateMachineResponse> {
  const annotations = { [STEPS_ANNOTATION]: record ? JSON.stringify(record) : null };
  const patch = { metadata: { resourceVersion, annotations } };
  try {
    return await then(await management.patch(machines, name, patch, { type: 'merge', namespace, abort }));
  } catch (error) {
    if (isConflict(error)) return underWay('the Machine changed meanwhile');
    throw error;
  }
}

function recordOn({ metadata }: Machine, id: string): StepRecord | undefined {
  const { data } = recordSchema.safeParse(parseJson(metadata.annotations?.[STEPS_ANNOTATION]));
  // One that says that all is done was written by somebody else.
  return data?.id === id && data.done < data.steps.length ? data : undefined;
}

function idOf({ metadata: { uid } }: Machine, desired: UpdateMachineRequest['desired']): string {
  const specs = MACHINE_SHAPE.parts.map((part) =>
    compared(MACHINE_SHAPE, part, desired[part.object as keyof typeof desired]),
  );
  const text = stableStringify([uid, ...specs.map(withoutDiscovery)]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The token of a joined worker may change meanwhile. */
function withoutDiscovery(spec: unknown): unknown {
  if (!isRecord(spec) || !isRecord(spec['joinConfiguration'])) return spec;
  const { discovery: _token, ...join } = spec['joinConfiguration'];
  return { ...spec, joinConfiguration: join };
}
