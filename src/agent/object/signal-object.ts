/** The object that carries an agent's signals, as the agent sees it. */
import type { Clock } from '../../util/clock.ts';
import type { OwnObject } from './own-object.ts';

export type SignalObject = Pick<
  OwnObject,
  'newest' | 'isKnown' | 'version' | 'onChange' | 'follow' | 'write' | 'refresh'
>;

/** An object that its agent also creates and keeps up to date. */
export type RegisteredObject = SignalObject & Pick<OwnObject, 'claim' | 'writeStatus'>;

/** Waits until the version of `object` is another than `version`, `woken` resolves, or `ms` have passed, if given. */
export async function changeOrTimeout(
  object: Pick<SignalObject, 'version' | 'onChange'>,
  version: number,
  ms: number | undefined,
  { clock, stop, woken }: { clock: Clock; stop: AbortSignal; woken?: Promise<unknown> | undefined },
): Promise<void> {
  if (stop.aborted || object.version !== version) return;
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
    void woken?.then(wake);
  });
}
