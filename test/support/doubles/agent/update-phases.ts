/**
 * The steps of a k0supdate that the node itself carries out: from the new signal to the download, the replacement of
 * the binary, and the restart.
 */
import { chmod, link, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject, Resource } from '../../../../src/kube/resources.ts';
import type { SignalData } from '../../../../src/signal/annotations.ts';
import type { SignalStatus } from '../../../../src/signal/names.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Controller } from '../runtime/manager.ts';
import type { AgentParts } from './parts.ts';
import { downloadPayload } from './payload.ts';
import { controllerOf, ON_CHANGE, type Phase, withStatus, writeSignal } from './phase.ts';

/** Returns the controllers for the object that carries the k0supdate of the node. */
export function updateControllers(parts: AgentParts, resource: Resource): Controller[] {
  const common = {
    resource,
    kind: 'k0supdate',
    owns: (name: string) => name === parts.name,
  } as const;
  const steps: Omit<Phase, keyof typeof common>[] = [
    {
      name: 'signal',
      triggers: ON_CHANGE,
      act: async (object, signal) => await begin(parts, resource, object, signal),
    },
    {
      name: 'downloading',
      status: 'Downloading',
      triggers: ON_CHANGE,
      act: async (object, signal) => await download(parts, resource, object, signal),
    },
    {
      name: 'applying-update',
      status: 'ApplyingUpdate',
      triggers: ON_CHANGE,
      act: async (object, signal) => await apply(parts, resource, object, signal),
    },
    {
      name: 'restart',
      status: 'Restart',
      triggers: { create: false, update: 'any' },
      act: async (object, signal) => await restart(parts, resource, object, signal),
    },
    {
      name: 'restarted',
      status: 'Restart',
      triggers: { create: true },
      act: async (object, signal) => await comeBack(parts, resource, object, signal),
    },
  ];
  return steps.map((step) => controllerOf({ ...common, ...step }, parts.cache));
}

type Step = (
  parts: AgentParts,
  resource: Resource,
  object: KubeObject,
  signal: SignalData,
) => Promise<void>;

async function advance(
  { client, clock }: AgentParts,
  resource: Resource,
  object: KubeObject,
  signal: SignalData,
  status: SignalStatus,
): Promise<void> {
  await writeSignal(client, resource, object, withStatus(signal, status, clock));
}

/** Compares the versions as texts. A node that runs the wanted version is done, unless the update is forced. */
const begin: Step = async (parts, resource, object, signal) => {
  if (signal.status !== undefined) return;
  const { version, forceupdate } = signal.command;
  const isDone = (await parts.machine.version()) === version && forceupdate !== true;
  await advance(parts, resource, object, signal, isDone ? 'Completed' : 'Downloading');
};

const STAGED = 'k0s.tmp';

/**
 * Writes the status to the object as it was before the download. If the object has changed meanwhile, the write
 * conflicts, and the download is repeated.
 */
const download: Step = async (parts, resource, object, signal) => {
  const { machine, times } = parts;
  const request = {
    directory: machine.binaryDirectory,
    userAgent: machine.userAgent,
    stallMs: times.stall,
  };
  const status = await downloadPayload({
    ...request,
    command: signal.command,
    name: STAGED,
    abort: parts.abort,
  }).then(
    () => 'Cordoning' as const,
    (error: unknown) => {
      parts.log.warn('download failed', { problem: messageOf(error) });
      return 'FailedDownload' as const;
    },
  );
  await advance(parts, resource, object, signal, status);
};

/**
 * Puts the staged binary in place and writes the status `Restart`. The original writes to the object as its cache has
 * it. The cache of this double lags much further behind on a busy machine, so this step reads the object from the API
 * server. A write of another component between that read and the write of the status still gets a conflict.
 */
const apply: Step = async (parts, resource, cached, signal) => {
  const { clock, tracker, machine, client, quirks } = parts;
  const object = await client.get(resource, cached.metadata.name);
  const staged = join(machine.binaryDirectory, STAGED);
  if (quirks.replayableApply) await putInPlaceByLink(machine.binaryDirectory);
  else {
    // If the staged file is gone, the step does not look for it elsewhere. So this step fails for ever after a failed
    // write of the status.
    await chmod(staged, 0o755);
    await rename(staged, join(machine.binaryDirectory, 'k0s'));
  }
  const next = withStatus(signal, 'Restart', clock);
  tracker.record(next);
  await writeSignal(client, resource, object, next);
  await rm(staged, { force: true });
};

async function putInPlaceByLink(directory: string): Promise<void> {
  const staged = join(directory, STAGED);
  const fresh = join(directory, 'k0s.new');
  try {
    await chmod(staged, 0o755);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return; // The binary is already in place.
    throw error;
  }
  await rm(fresh, { force: true });
  await link(staged, fresh);
  await rename(fresh, join(directory, 'k0s'));
}

/** Handles update events. At that time, the process that wrote `Restart` may still be running. */
const restart: Step = async (parts, resource, object, signal) => {
  const { machine, quirks, tracker } = parts;
  const isWanted = (await machine.version()) === signal.command.version;
  const isOurs = !quirks.restartTracker || tracker.isPending(signal);
  if (isWanted || (!isOurs && signal.command.forceupdate === true)) {
    await advance(parts, resource, object, signal, 'UnCordoning');
  } else if (isOurs) await machine.terminate();
};

/**
 * Handles the objects that exist at the start of the process. If the running version is not the wanted version and the
 * update is not forced, it does nothing and logs nothing.
 */
const comeBack: Step = async (parts, resource, object, signal) => {
  const { machine, quirks, tracker } = parts;
  if (quirks.restartTracker && tracker.isPending(signal)) return;
  const isWanted = (await machine.version()) === signal.command.version;
  if (isWanted || signal.command.forceupdate === true)
    await advance(parts, resource, object, signal, 'UnCordoning');
};
