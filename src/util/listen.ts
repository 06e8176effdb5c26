/** Makes a server listen at an address that a flag names. */
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { RefitError } from './errors.ts';
import { aborted } from './waits.ts';

export const ADDRESS_ADVICE = 'use host:port, such as 127.0.0.1:8080';

/** Returns the parts of `host:port`; undefined if the text has another form. The host may be empty. */
export function partsOfAddress(text: string): { host: string; port: number } | undefined {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(text) ?? [];
  return port === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) };
}

/**
 * Listens at `address`, which is `host:port`. Port 0 selects a free port. It rejects with
 * REFIT_USAGE if the server cannot listen.
 */
export async function listen(server: Server, address: string): Promise<AddressInfo> {
  const { host, port } = partsOfAddress(address) ?? {};
  if (host === undefined || port === undefined)
    throw new RefitError('REFIT_USAGE', `"${address}" is not an address: ${ADDRESS_ADVICE}`);
  const bare = host.replace(/^\[|\]$/g, '');
  return await new Promise((resolve, reject) => {
    // The listener stays, because a later connection that cannot be accepted must not end the
    // process.
    server.on('error', (cause) => {
      const hint = 'choose another address, or stop the process that uses it';
      reject(
        new RefitError('REFIT_USAGE', `cannot listen at ${address}: ${cause.message}`, {
          cause,
          hint,
        }),
      );
    });
    server.listen(port, bare === '' ? undefined : bare, () =>
      resolve(server.address() as AddressInfo),
    );
  });
}

/**
 * Waits until `abort` fires, then closes the server and cuts off its clients. It resolves when the
 * server is closed.
 */
export async function closeOnAbort(server: HttpServer, abort: AbortSignal): Promise<void> {
  await aborted(abort);
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
