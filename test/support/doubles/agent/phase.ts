/**
 * The parts that all steps of a node share: which events they handle, how they read the object again, and how they
 * write it.
 */
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../../../src/kube/resources.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../../../../src/signal/annotations.ts';
import type { SignalStatus } from '../../../../src/signal/names.ts';
import { type Clock, rfc3339 } from '../../../../src/util/clock.ts';
import type { Cache, Controller } from '../runtime/manager.ts';
import { typed } from '../typed-object.ts';

export interface Phase {
  readonly name: string;
  readonly resource: Resource;
  readonly kind: 'k0supdate' | 'airgapupdate';
  /** The status at which the step runs; if absent, the step runs for a signal without a status. */
  readonly status?: SignalStatus;
  readonly triggers: Controller['triggers'];
  /** Reports whether the step handles events of the object with this name. */
  readonly owns: (name: string) => boolean;
  /**
   * Runs the step on the object as the cache had it at the beginning. If this object is out of date, the writes of the
   * step get a conflict.
   */
  readonly act: (object: KubeObject, signal: SignalData) => Promise<void>;
}

export const ON_CHANGE: Controller['triggers'] = { create: true, update: 'annotations' };

export function controllerOf(phase: Phase, cache: Cache): Controller {
  const { name, resource, kind, status, triggers, owns, act } = phase;
  return {
    name,
    resource,
    triggers,
    admits: (object) => {
      const signal = decodeSignal(object.metadata.annotations);
      return (
        owns(object.metadata.name) &&
        signal?.command.kind === kind &&
        signal.status?.status === status
      );
    },
    async reconcile(name) {
      const object = cache.get(resource, name);
      if (object === undefined) return undefined;
      const signal = decodeSignal(object.metadata.annotations);
      if (signal === undefined) throw new Error('there is no signal any more');
      // A missing status counts as the status of this step, because the original does not check this more closely.
      if (signal.status === undefined || signal.status.status === status) await act(object, signal);
      return undefined;
    },
  };
}

/**
 * Writes the whole object as it was read, with the signal added. The API server answers with a conflict if the object
 * has changed since that read.
 */
export async function writeSignal(
  client: KubeClient,
  resource: Resource,
  object: KubeObject,
  signal: SignalData,
) {
  await client.replace(resource, withSignal(object, signal));
}

export function withStatus(signal: SignalData, status: SignalStatus, clock: Clock): SignalData {
  return { ...signal, status: { status, timestamp: rfc3339(clock.now()) } };
}

/** Replaces the values of both annotations. Members that the structs don't know are lost. */
export function withSignal<T extends KubeObject>(object: T, signal: SignalData): T {
  const copy = typed(object);
  copy.metadata.annotations = { ...copy.metadata.annotations, ...encodeSignal(signal) };
  return copy;
}
