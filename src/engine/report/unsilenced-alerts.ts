/** Remembers the plans for which an Event has reported that alerts are not silenced. */
import type { SilenceState } from '../../silences/keeper.ts';
import { because, type Reason } from '../model/reasons.ts';

/** Returns a memory for one term of leadership. */
export function unsilencedMemory() {
  const told = new Set<string>();
  return {
    /** Returns why the alerts about this plan are not silenced; undefined if they are silenced, or if this was reported already. */
    at(key: string, state: SilenceState | undefined): Reason | undefined {
      if (state === undefined || state.isGood) {
        told.delete(key);
        return undefined;
      }
      const isTold = told.has(key);
      told.add(key);
      return isTold ? undefined : because('AlertmanagerUnreachable', state.message);
    },
    forget: (key: string) => void told.delete(key),
  };
}
