/** What all steps of a node have in common: which events they take up, what they re-read, and how they write. */
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
  /** The status that the step is for; the one without status where absent. */
  readonly status?: SignalStatus;
  readonly triggers: Controller['triggers'];
  /** Whether events of this object are taken up at all. */
  readonly owns: (name: string) => boolean;
  /** Gets the object as the cache had it at the beginning: what it writes conflicts where that is too old. */
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
      // A status that is missing is taken for the own one: the original looks no closer.
      if (signal.status === undefined || signal.status.status === status) await act(object, signal);
      return undefined;
    },
  };
}

/** The whole object as it was read, with the signal in it; a conflict where it has changed since. */
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

/** Both annotations are written anew: members that the structs don't know are lost. */
export function withSignal<T extends KubeObject>(object: T, signal: SignalData): T {
  const copy = typed(object);
  copy.metadata.annotations = { ...copy.metadata.annotations, ...encodeSignal(signal) };
  return copy;
}
