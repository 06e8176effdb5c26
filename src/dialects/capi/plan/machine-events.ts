/** Writes Events about the progress of an update to a Machine, or to the MachineDeployment of a MachineSet. */
import { createHash } from 'node:crypto';
import type {
  HookObject,
  HookResponse,
  UpdateMachineRequest,
  UpdateMachineResponse,
} from '../../../api/capi/hooks.ts';
import { machineDeployments, machines, SET_LABELS } from '../../../api/capi/machine.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { EventRecorder } from '../../../kube/event-recorder.ts';
import type { EventNote } from '../../../kube/event-series.ts';
import type { Resource } from '../../../kube/resources.ts';
import type { Logger } from '../../../util/log.ts';
import { versionIn } from './desired-version.ts';

export type TellMachine = (asked: HookObject, note: EventNote) => Promise<void>;

const MOST = 10_000;
const READ_MS = 5_000;

/**
 * Returns a function that writes an Event only if it differs from the last Event of the same object. Cluster API
 * repeats its calls, and each call would otherwise write the same Event again.
 */
export function machineEvents(
  management: KubeClient,
  events: Pick<EventRecorder, 'record'>,
  log: Logger,
): TellMachine {
  const told = new Map<string, string>();
  return async ({ kind, metadata }, note) => {
    const { namespace = 'default', labels } = metadata;
    const isMachine = kind === 'Machine';
    const resource: Resource = isMachine ? machines : machineDeployments;
    const name = isMachine ? metadata.name : labels?.[SET_LABELS.deployment];
    const key = `${kind} ${namespace}/${name}`;
    const words = `${note.reason} ${note.message}`;
    if (name === undefined || told.get(key) === words) return;
    if (told.size >= MOST) told.clear();
    told.set(key, words);
    try {
      // The object is read first, because the caller sends no uid, and may name an object that does
      // not exist.
      const object = await management.get(resource, name, {
        namespace,
        abort: AbortSignal.timeout(READ_MS),
      });
      // The digest becomes the name of the Event. All replicas compute the same digest for the same Event, so only one
      // replica can create the Event.
      const once = createHash('sha256')
        .update(`${object.metadata.uid} ${words}`)
        .digest('hex')
        .slice(0, 16);
      events.record(object, { ...note, once });
    } catch (error) {
      told.delete(key);
      log.warn('cannot write the Event about an update', { object: key, reason: error });
    }
  };
}

export function canNote(answer: HookResponse): EventNote {
  const { status, message = '' } = answer;
  if (status === 'Failure') return { type: 'Warning', reason: 'UpdateRefused', message };
  const isClaim = Object.keys(answer).some((key) => key.endsWith('Patch'));
  return { type: 'Normal', reason: isClaim ? 'UpdateClaimed' : 'UpdateNotClaimed', message };
}

/** Returns the Event about an update that is not refused, but waits before anything is marked. */
export function waitNote({ message = '' }: HookResponse): EventNote {
  return { type: 'Normal', reason: 'UpdateWaits', message };
}

export function updateNote(
  { desired }: UpdateMachineRequest,
  answer: UpdateMachineResponse,
): EventNote {
  const { status, message = '', retryAfterSeconds } = answer;
  if (status === 'Failure') return { type: 'Warning', reason: 'UpdateFailed', message };
  const to = `Update in place to ${versionIn(desired.machine) ?? 'no version'}`;
  if (retryAfterSeconds > 0)
    return { type: 'Normal', reason: 'UpdateRequested', message: `${to} requested` };
  return { type: 'Normal', reason: 'UpdateDone', message: `${to} is done` };
}
