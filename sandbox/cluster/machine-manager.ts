/** Does what Cluster API's managers do in an in-place update. */
import type {
  CanUpdateResponse,
  HookObject,
  Triple,
  UpdateMachineResponse,
} from '../../src/api/capi/hooks.ts';
import { type Machine, machines } from '../../src/api/capi/machine.ts';
import { changesBetween, MACHINE_SHAPE, nameOf } from '../../src/dialects/capi/hooks/can-update.ts';
import { applyPatches } from '../../src/dialects/capi/hooks/updaters/hook-patch.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { type CallerOptions, callHook } from './hook-caller.ts';

export interface ManagerOptions {
  /** As administrator. */
  readonly client: KubeClient;
  readonly caller: CallerOptions;
  readonly clock: Clock;
  readonly abort?: AbortSignal;
  /** Called for every answer, and for every call without an answer. */
  readonly onCall?: (answer: UpdateMachineResponse | Error) => void;
}

const IN_PROGRESS = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress';
/** The time after which a call without an answer is repeated, in milliseconds. A manager also begins with one second. */
const BACKOFF_MS = 1000;
/**
 * The maximum time between two calls, in milliseconds. A manager also calls when one of its objects changes, so it may
 * call sooner than the answer asked for. In this stand-in, every call comes after at most this time.
 */
const LONGEST_MS = 2000;

/** The desired state of a Machine, its bootstrap config and its infrastructure Machine. */
export interface Wanted {
  readonly machine: string;
  readonly version: string;
  /** Fields of the bootstrap config. */
  readonly files?: readonly { readonly path: string; readonly content: string }[];
  readonly ntp?: object;
  readonly clusterConfiguration?: object;
  /** Additional fields in the spec of the infrastructure Machine. */
  readonly infrastructure?: object;
}

/**
 * Returns the names of the changes that no updater covers. If there are such changes, a manager would write nothing,
 * and would replace the machine.
 */
export async function askCanUpdate(options: ManagerOptions, wanted: Wanted): Promise<string[]> {
  return (await askWhatIsLeft(options, wanted)).uncovered;
}

/** Does the same as `askCanUpdate`, and also returns the message of the answer. */
export async function askWhatIsLeft(options: ManagerOptions, wanted: Wanted) {
  const machine = await options.client.get(machines, wanted.machine, { namespace: 'default' });
  const current = tripleOf(machine);
  const desired = desiredOf(machine, wanted);
  const answer = await callHook<CanUpdateResponse>(options.caller, 'CanUpdateMachine', {
    current,
    desired,
  });
  if (answer.status !== 'Success') throw new Error(answer.message);
  const left = changesBetween(MACHINE_SHAPE, applyPatches(MACHINE_SHAPE, current, answer), desired);
  return { uncovered: left.map(nameOf), message: answer.message };
}

/** Writes the desired version into the Machine. This is the point of no return. */
export async function writeDesired(
  { client }: ManagerOptions,
  { machine, version }: Wanted,
): Promise<void> {
  const patch = { metadata: { annotations: { [IN_PROGRESS]: '' } }, spec: { version } };
  await client.patch(machines, machine, patch, { type: 'merge', namespace: 'default' });
}

/** Calls again after the time that each answer names, until the update is done. Rejects with the message of a failure. */
export async function driveUpdate(options: ManagerOptions, wanted: Wanted): Promise<void> {
  const { client, clock, abort } = options;
  for (;;) {
    const answer = await askUpdate(options, wanted);
    const waitMs =
      answer instanceof Error ? BACKOFF_MS : Math.min(answer.retryAfterSeconds * 1000, LONGEST_MS);
    if (waitMs <= 0) break;
    await sleep(clock, waitMs, abort);
  }
  const patch = { metadata: { annotations: { [IN_PROGRESS]: null } } };
  await client.patch(machines, wanted.machine, patch, { type: 'merge', namespace: 'default' });
}

/** Makes one call. Returns an error if the call got no answer. Rejects with the message of a failure. */
export async function askUpdate(
  options: ManagerOptions,
  wanted: Wanted,
): Promise<UpdateMachineResponse | Error> {
  const machine = await options.client.get(machines, wanted.machine, { namespace: 'default' });
  const answer = await callHook<UpdateMachineResponse>(options.caller, 'UpdateMachine', {
    desired: desiredOf(machine, wanted),
  }).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
  options.onCall?.(answer);
  if (!(answer instanceof Error) && answer.status !== 'Success') throw new Error(answer.message);
  return answer;
}

/** Returns the objects as they are in the body of a hook: without uid, resourceVersion and status. */
function tripleOf({
  apiVersion,
  kind,
  metadata,
  spec,
}: Machine): Triple & Record<'machine', HookObject> {
  const { name, namespace = 'default', labels = {}, annotations = {} } = metadata;
  const own = { name, namespace, labels };
  return {
    machine: {
      apiVersion: apiVersion ?? '',
      kind: kind ?? '',
      metadata: { ...own, annotations },
      spec,
    },
    infrastructureMachine: {
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
      kind: 'DevMachine',
      metadata: own,
      spec: { providerID: spec?.providerID },
    },
    bootstrapConfig: {
      apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
      kind: 'KubeadmConfig',
      metadata: own,
      spec: { format: 'cloud-config' },
    },
  };
}

function desiredOf(machine: Machine, wanted: Wanted): Triple {
  const { version, files, ntp, clusterConfiguration, infrastructure } = wanted;
  const triple = tripleOf({ ...machine, spec: { ...machine.spec, version } });
  const { bootstrapConfig, infrastructureMachine, ...rest } = triple;
  if (!bootstrapConfig || !infrastructureMachine) return triple;
  const spec = {
    format: 'cloud-config',
    ...(files && { files }),
    ...(ntp && { ntp }),
    ...(clusterConfiguration && { clusterConfiguration }),
  };
  return {
    ...rest,
    bootstrapConfig: { ...bootstrapConfig, spec },
    infrastructureMachine: {
      ...infrastructureMachine,
      spec: { ...(infrastructureMachine.spec as object), ...infrastructure },
    },
  };
}
