/** Defines the object that carries an agent's signals, and waits for its changes. */
import { type BackoffOptions, backoffDelay, type Clock } from '../../util/clock.ts';
import { createListeners } from '../../util/listeners.ts';
import type { Tools } from '../../util/tools.ts';
import { onAbort } from '../../util/waits.ts';
import type { OwnObject } from './own-object.ts';

/** The part of the object that the agent needs to carry out signals. */
export type SignalObject = Omit<OwnObject, 'writeStatus' | 'claim'>;

/** The part of an object that shows whether the object has changed. */
export type ChangingObject = Pick<OwnObject, 'version' | 'onChange'>;

/**
 * Returns a changing object that combines two objects. When either of them changes, its version changes and its
 * listeners are called.
 */
export function eitherOf(one: ChangingObject, other: ChangingObject): ChangingObject {
  return {
    get version() {
      // The sum changes when one of the versions changes, because both versions only increase.
      return one.version + other.version;
    },
    onChange(listener) {
      const forgets = [one, other].map((each) => each.onChange(listener));
      return () => {
        for (const forget of forgets) forget();
      };
    },
  };
}

/**
 * Forwards the changes of an object that may be replaced by another object. An example is the Node of a host whose name
 * changes.
 */
export interface ChangeRelay extends ChangingObject {
  readonly changed: () => void;
}

export function changeRelay(): ChangeRelay {
  const listeners = createListeners();
  let version = 0;
  return {
    get version() {
      return version;
    },
    onChange: (listener) => listeners.add(listener),
    changed() {
      version++;
      listeners.call();
    },
  };
}

interface RepeatParts {
  readonly object: ChangingObject;
  readonly clock: Clock;
  readonly random: Tools['random'];
}

/**
 * Resolves when the version of the object differs from `version`, when `woken` resolves, or after `ms` milliseconds. If
 * `ms` is undefined, there is no time limit.
 */
export async function changeOrTimeout(
  object: ChangingObject,
  version: number,
  ms: number | undefined,
  { clock, stop, woken }: { clock: Clock; stop: AbortSignal; woken?: Promise<unknown> | undefined },
): Promise<void> {
  if (stop.aborted || object.version !== version) return;
  const { promise, resolve: wake } = Promise.withResolvers<void>();
  using waiting = new DisposableStack();
  waiting.defer(object.onChange(wake));
  waiting.use(onAbort(stop, wake));
  if (ms !== undefined) waiting.defer(clock.schedule(ms, wake));
  void woken?.then(() => wake());
  await promise;
}

/**
 * Runs `work` repeatedly until `stop` aborts. It runs `work` after each change of the object, and after the
 * milliseconds that `work` returned. After a failure it waits, and the pauses grow. Never rejects.
 */
export async function keepDoing(
  work: () => Promise<number | undefined>,
  onFailure: (error: unknown, pauseMs: number) => void,
  retry: Omit<BackoffOptions, 'random'>,
  { object, clock, random }: RepeatParts,
  stop: AbortSignal,
): Promise<void> {
  for (let failures = 0; !stop.aborted; ) {
    const { version } = object;
    let pauseMs: number | undefined;
    try {
      pauseMs = await work();
      failures = 0;
    } catch (error) {
      pauseMs = backoffDelay(failures++, { ...retry, random });
      if (!stop.aborted) onFailure(error, pauseMs);
    }
    await changeOrTimeout(object, version, pauseMs, { clock, stop });
  }
}
