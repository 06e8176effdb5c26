/** Defines the object that carries an agent's signals, and waits for its changes. */
import { type BackoffOptions, backoffDelay, type Clock } from '../../util/clock.ts';
import type { Tools } from '../../util/tools.ts';
import { onAbort } from '../../util/waits.ts';
import type { OwnObject } from './own-object.ts';

export type SignalObject = Pick<
  OwnObject,
  'newest' | 'isKnown' | 'version' | 'onChange' | 'follow' | 'write' | 'refresh'
>;

/**
 * Resolves when the object has another version than `version`, when `woken` resolves, or after `ms` milliseconds. If
 * `ms` is undefined, there is no time limit.
 */
export async function changeOrTimeout(
  object: Pick<SignalObject, 'version' | 'onChange'>,
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
 * Runs `work` again and again until `stop` aborts: after each change of the object, and after the milliseconds that it
 * returned. After a failure it waits for a growing pause. Never rejects.
 */
export async function keepDoing(
  work: () => Promise<number | undefined>,
  tell: (error: unknown, pauseMs: number) => void,
  retry: Omit<BackoffOptions, 'random'>,
  {
    object,
    clock,
    random,
  }: Pick<Tools, 'clock' | 'random'> & { object: Pick<SignalObject, 'version' | 'onChange'> },
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
      if (!stop.aborted) tell(error, pauseMs);
    }
    await changeOrTimeout(object, version, pauseMs, { clock, stop });
  }
}
