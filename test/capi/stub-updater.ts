/** A small foreign updater: an HTTPS server that can change one field, in a few calls. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { HookEndpoint } from '../../sandbox/orchestrator/hook-updater.ts';
import { issueServer, type KeyPair, validFrom } from '../../tools/controlplane/certs.ts';

export interface StubUpdater extends AsyncDisposable {
  readonly endpoint: HookEndpoint;
  /** The bodies of all calls of UpdateMachine. */
  readonly updates: readonly object[];
}

export interface StubOptions {
  readonly name: string;
  readonly authority: { readonly subject: { readonly commonName: string }; readonly pair: KeyPair };
  /** What its patches make of the objects that it is asked about, by the key in the response. */
  readonly patches: Readonly<Record<string, object>>;
  /** Calls of UpdateMachine in which it is still at work. */
  readonly calls: number;
}

export async function startStubUpdater({ name, authority, patches, calls }: StubOptions): Promise<StubUpdater> {
  const { subject, pair } = authority;
  const names = { dns: [], addresses: ['127.0.0.1'] };
  const { certificate, key } = issueServer({ subject, key: pair.key }, names, validFrom(Date.now()));
  const updates: object[] = [];
  const encoded = Object.entries(patches).map(([patchKey, patch]) => [
    patchKey,
    { patchType: 'JSONMergePatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') },
  ]);
  const server = createServer({ cert: certificate, key }, (request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.once('end', () => {
      if (request.url?.includes('/canupdatemachine/') === true) {
        response.end(JSON.stringify({ status: 'Success', ...Object.fromEntries(encoded) }));
        return;
      }
      updates.push((JSON.parse(text) as { desired: object }).desired);
      const retryAfterSeconds = updates.length <= calls ? 1 : 0;
      response.end(JSON.stringify({ status: 'Success', message: `${name} works`, retryAfterSeconds }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    updates,
    endpoint: {
      name,
      url: `https://127.0.0.1:${port}`,
      authority: pair.certificate,
      handlers: { canUpdateMachine: 'can', updateMachine: 'update' },
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
