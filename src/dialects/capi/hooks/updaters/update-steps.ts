/**
 * Answers UpdateMachine: calls the updaters of an UpdaterSet one after the other, and records on the Machine which of
 * them are done.
 */
import type { UpdateMachineRequest, UpdateMachineResponse } from '../../../../api/capi/hooks.ts';
import { type Machine, machines } from '../../../../api/capi/machine.ts';
import type { Updater } from '../../../../api/refit/updater-set.ts';
import { ifFound } from '../../../../kube/status-error.ts';
import type { Clock } from '../../../../util/clock.ts';
import { messageOf } from '../../../../util/errors.ts';
import type { Logger } from '../../../../util/log.ts';
import { versionIn } from '../../plan/desired-version.ts';
import type { ClusterOf } from '../../plan/progress.ts';
import {
  DONE,
  failure,
  type UpdateTools,
  underWay,
  updateMachine,
} from '../../plan/update-machine.ts';
import { isDisabled, settingsProblem } from '../settings.ts';
import { configureNode } from './node-configuration.ts';
import * as stepRecord from './step-record.ts';
import { type CallUpdater, UNPROVEN, type UpdaterAnswer } from './updater-client.ts';
import { listSets, setFor, updatersFor } from './updater-sets.ts';

/** The tools and options that the hooks use for Machines of any cluster. */
export interface StepTools extends UpdateTools {
  readonly clock: Clock;
  readonly clusterOf: ClusterOf;
  /** Calls an updater. The function is undefined if Refit does not check who calls the hooks; only Refit's own updater then works. */
  readonly callUpdater: CallUpdater | undefined;
  readonly log: Logger;
}

/** The tools and options of one call of a hook. */
export interface StepParts extends StepTools {
  readonly abort: AbortSignal;
}

/**
 * The most seconds until the next call for which an updater may ask. Without this limit, an updater could delay a
 * Machine for years.
 */
const LONGEST_RETRY = 300;

/**
 * Answers one call, and calls at most one updater. The call is idempotent and works on any replica. The answer says
 * that the update is done only after every updater has answered that it is done.
 */
export async function updateInSteps(
  parts: StepParts,
  request: UpdateMachineRequest,
): Promise<UpdateMachineResponse> {
  const { settings, desired } = request;
  const wrong = settingsProblem(settings);
  if (wrong !== undefined) return failure(wrong);
  if (isDisabled(settings))
    return failure('in-place updates are disabled by the setting disableInPlaceUpdates');
  const { name, namespace = 'default' } = desired.machine.metadata;
  const title = `Machine ${namespace}/${name}`;
  const machine = await ifFound(
    parts.management.get(machines, name, { namespace, abort: parts.abort }),
  );
  if (!machine) return failure(`${title} does not exist`);
  // Anybody can send a body, so the version in the body must be equal to the version of the Machine in the API.
  const live = machine.spec?.version;
  const asked = versionIn(desired.machine);
  if (live !== asked)
    return failure(
      `${title} has spec.version ${live ?? 'no version'}, but the call asks for ${asked ?? 'none'}`,
    );
  const id = stepRecord.idOf(machine, desired);
  const record = stepRecord.recordOn(machine, id);
  if (record) return await takeStep({ ...parts, machine, request }, record);
  const chosen = (await stepRecord.acceptedOf(parts, machine)) ?? (await chosenFor(parts, machine));
  if (chosen.steps.length === 0)
    return failure(`UpdaterSet ${chosen.set} has no updater for the labels of this Machine`);
  const first = { ...chosen, id, done: 0 };
  const next = await stepRecord.saved(parts, machine, first);
  return next ? await takeStep({ ...parts, machine: next, request }, first) : CHANGED;
}

const REFIT_ALONE: Updater = { name: 'Refit', refit: {} };

async function chosenFor(parts: StepParts, { metadata }: Machine): Promise<stepRecord.Accepted> {
  const { labels = {} } = metadata;
  const set = setFor(await listSets(parts), labels);
  if (!set) return { steps: [REFIT_ALONE.name] };
  const all = updatersFor(set, labels);
  // No record exists at this point. Usually the updater of the node configuration runs only if a record says that it
  // accepted the change. But if it is the only updater, it is called, because it must have finished before, and only
  // its last answer was lost.
  const others = all.filter(({ nodeConfiguration }) => !nodeConfiguration);
  return stepRecord.acceptedBy(set, others.length > 0 ? others : all);
}

interface StepCall extends StepParts {
  readonly machine: Machine;
  readonly request: UpdateMachineRequest;
}

/** Resolves with the updater of a set; undefined if the set, or the updater in it, does not exist any more. */
async function updaterIn(call: StepCall, set: string, name: string): Promise<Updater | undefined> {
  const found = (await listSets(call)).find(({ metadata }) => metadata.name === set);
  return found?.spec.updaters.find((updater) => updater.name === name);
}

/** Calls the next updater of the record. The record must contain the name of the updater before this call. */
async function takeStep(
  call: StepCall,
  record: stepRecord.StepRecord,
): Promise<UpdateMachineResponse> {
  const { set, steps, done } = record;
  const name = steps[done] ?? '';
  const updater = set === undefined ? REFIT_ALONE : await updaterIn(call, set, name);
  const gone = `updater ${name} is to update this Machine, but UpdaterSet ${set} no longer has it: add the updater to the UpdaterSet again, or remove the annotation ${stepRecord.STEPS_ANNOTATION} of the Machine, and of its MachineDeployment, to continue without the updater`;
  if (!updater) return failure(gone);
  const answer = await answerOf(call, updater);
  if (answer instanceof Error) return underWay(`waiting for updater ${name}: ${answer.message}`);
  const { status, message = 'without a message', retryAfterSeconds = 0 } = answer;
  const words = updater.refit ? message : `updater ${name}: ${message}`;
  if (status === 'Failure') return failure(words);
  if (retryAfterSeconds > 0)
    return { ...underWay(words), retryAfterSeconds: Math.min(retryAfterSeconds, LONGEST_RETRY) };
  const isLast = done + 1 === steps.length;
  // The record must say that the step is done before Cluster API gets the answer. Otherwise the next call would repeat the step.
  const next = await stepRecord.saved(
    call,
    call.machine,
    isLast ? undefined : { ...record, done: done + 1 },
  );
  if (!next) return CHANGED;
  if (isLast) return DONE;
  const note = `updater ${name} is done, ${steps[done + 1]} is next`;
  void call.tell(call.request.desired.machine, {
    type: 'Normal',
    reason: 'UpdaterDone',
    message: note,
  });
  return underWay(note);
}

async function answerOf(call: StepCall, updater: Updater): Promise<UpdaterAnswer | Error> {
  const { machine, request, callUpdater, abort } = call;
  const { desired } = request;
  const asked = updater === REFIT_ALONE ? request : { ...request, settings: updater.settings };
  if (updater.refit)
    return await updateMachine({ ...call, ...call.clusterOf(machine) }, asked, machine);
  if (!callUpdater) return new Error(UNPROVEN);
  // The Machine does not contain the desired configuration, so the configuration is read from the body of the call.
  if (updater.nodeConfiguration)
    return await configureNode({ ...call, ...call.clusterOf(machine) }, request, machine);
  const told = (error: unknown): Error => new Error(messageOf(error), { cause: error });
  return await callUpdater(updater, 'UpdateMachine', { desired }, abort).catch(told);
}

const CHANGED = underWay('the Machine changed meanwhile');
