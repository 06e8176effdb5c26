/** Builds hooks of policies for tests. */
import type { Hook, HookMoment } from '../../../src/hooks/rules.ts';
import { MINUTE } from '../clock/times.ts';

/** Returns a hook that runs a Job at this moment, at most for a minute. */
export function buildHook(name: string, when: HookMoment, more: Partial<Hook> = {}): Hook {
  const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  const action = {
    kind: 'job',
    namespace: 'hooks',
    template,
    pinToNode: false,
    retries: 0,
  } as const;
  return { name, when, action, timeoutMs: MINUTE, ...more };
}
