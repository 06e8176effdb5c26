/** Rollouts for tests. By default they run, nothing has failed, and they have no problems. */
import type { Rollout, Stage } from '../../../src/engine/model/rollout.ts';
import { later } from '../clock/times.ts';

export function buildRollout(stages: readonly Stage[], more: Partial<Rollout> = {}): Rollout {
  const source = {
    apiVersion: 'example.com/v1',
    kind: 'Plan',
    name: 'plan',
    uid: 'plan-uid',
    created: later(0),
  };
  return { source, id: 'run-1', phase: 'running', blocked: false, stages, problems: [], ...more };
}
