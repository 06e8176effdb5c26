/** Targets for tests. By default a target was found at the beginning and waits for its turn. */
import type { RecordedState, Target } from '../../../src/engine/model/rollout.ts';
import { later } from '../clock/times.ts';

export function buildTarget(
  name: string,
  state: RecordedState = 'pending',
  more: Partial<Target> = {},
): Target {
  return { key: name, name, state, since: later(0), ...more };
}
