/** Tests how long `--apply-crds` asks again if an API server refuses a definition, and what it says in the end. */
import { expect, test, vi } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { StatusError } from '../kube/status-error.ts';
import { silentLogger } from '../util/log.ts';
import { applyDefinitions } from './apply-definitions.ts';

const CRD = 'customresourcedefinitions.apiextensions.k8s.io "x" is forbidden:';
const NOT_READY = `${CRD} not yet ready to handle request`;
const NO_RIGHT = `${CRD} User "jane" cannot patch resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`;

/** Applies the definitions to an API server that first refuses so many writes with the message. */
async function applyTo(message: string, refusals: number): Promise<unknown> {
  const clock = new FakeClock();
  const refused = new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message });
  let left = refusals;
  const client = {
    get: vi.fn().mockRejectedValue(new StatusError({ kind: 'Status', code: 404 })),
    patch: async () => {
      left -= 1;
      if (left >= 0) throw refused;
      return await Promise.resolve({ metadata: { name: 'x', resourceVersion: '1' } });
    },
    list: vi.fn().mockResolvedValue({ items: [] }),
  } as unknown as KubeClient;
  const abort = new AbortController().signal;
  const run = { client, version: '1.0.0', abort, clock, log: silentLogger };
  const ended = applyDefinitions(run).then(
    () => 'applied',
    (error: unknown) => error,
  );
  return await clock.runUntil(ended);
}

test.each([
  ['is not ready for admission yet', NOT_READY],
  ['has not loaded the rights yet', NO_RIGHT],
])('an API server that %s after its start is asked again', async (_title, message) => {
  expect(await applyTo(message, 3)).toBe('applied');
});

test('an API server that goes on refusing a definition is told with its own words', async () => {
  expect(await applyTo(NOT_READY, 100)).toMatchObject({ name: 'StatusError', message: NOT_READY });
});

test('an API server that goes on denying the right to apply definitions is told as a missing right', async () => {
  expect(await applyTo(NO_RIGHT, 100)).toMatchObject({ code: 'REFIT_FORBIDDEN' });
});
