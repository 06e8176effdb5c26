/** Proves what `refit kubeadm apply` makes of a lock that it may not take. */
import { expect, onTestFinished, test } from 'vitest';
import { startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { isForbidden, StatusError } from '../../kube/status-error.ts';
import { aroundRequests } from '../../kube/transport/bounded-client.ts';
import { clientOver } from '../../kube/transport/http-client.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import { carryOut } from './run.ts';
import type { ApplySession } from './session.ts';

test('without the right to write its lease, the command ends and names it, before it decides anything', async () => {
  const server = await startApiServer();
  onTestFinished(async () => await server.stop());
  const refused = new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'leases is forbidden' });
  const client = aroundRequests(clientOver(server.caller), async (what, options, send) => {
    if (what === 'create leases') throw refused;
    return await send(options);
  });
  const abort = AbortSignal.timeout(20_000);
  const output = { write: () => undefined };
  const flags = { leaseDuration: 15_000 };
  const session = { flags, client, clock: systemClock, log: silentLogger, identity: 'me', output, abort };
  const decide = async (): Promise<never> => await Promise.reject(new Error('it decided'));
  const thrown: unknown = await carryOut(session as unknown as ApplySession, decide).catch((e: unknown) => e);
  expect(isForbidden(thrown)).toBe(true);
});
