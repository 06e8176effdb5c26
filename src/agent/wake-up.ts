/** Owns the agent's sleep: until the object changes, the time is over or the agent stops. */
import type { Clock } from '../util/clock.ts';
import type { SignalObject } from './object/signal-object.ts';

/** Returns at once where `object` has changed since its version was `seen`; without `ms` there is no time limit. */
export async function changeOrTimeout(
  object: Pick<SignalObject, 'version' | 'onChange'>,
  seen: number,
  ms: number | undefined,
  { clock, stop }: { clock: Clock; stop: AbortSignal },
): Promise<void> {
  if (stop.aborted || object.version !== seen) return;
  await new Promise<void>((resolve) => {
    const wake = (): void => {
      unsubscribe();
      cancelTimer();
      stop.removeEventListener('abort', wake);
      resolve();
    };
    const unsubscribe = object.onChange(wake);
    const cancelTimer = ms === undefined ? () => undefined : clock.schedule(ms, wake);
    stop.addEventListener('abort', wake, { once: true });
  });
}
