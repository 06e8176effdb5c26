/**
 * A mirror over HTTPS. No host trusts its authority, unless a process is started with the file that the mirror writes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { type Script, type StubServer, startStubServer } from '../faults/stub-server.ts';

/** Certificate and key of a server. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

export interface HttpsMirror extends AsyncDisposable {
  readonly server: StubServer;
  /** Returns an identity for another server on 127.0.0.1, from the same authority, with only these names. */
  identify(...names: string[]): Identity;
  /** The environment variables that make a process trust this mirror and no other server. */
  readonly trust: Readonly<Record<'SSL_CERT_FILE' | 'SSL_CERT_DIR', string>>;
}

/** Starts the mirror. Its certificate is for 127.0.0.1 and for `names`. */
export async function startHttpsMirror(
  script: Script,
  names: readonly string[] = [],
): Promise<HttpsMirror> {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-authority-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const validity = validFrom(systemClock.now());
  // Each authority has its own name. If two authorities had the same name, the error would be different.
  const subject = { commonName: basename(directory) };
  const authority = createAuthority(subject, validity);
  const issuer = { subject, key: authority.key };
  const identify = (...dns: string[]): Identity => {
    const { certificate: cert, key } = issueServer(
      issuer,
      { dns, addresses: ['127.0.0.1'] },
      validity,
    );
    return { cert, key };
  };
  const file = join(directory, 'authority.pem');
  await writeFile(file, authority.certificate);
  const server = things.use(await startStubServer(script, identify(...names)));
  const owned = things.move();
  return {
    server,
    identify,
    trust: { SSL_CERT_FILE: file, SSL_CERT_DIR: join(directory, 'none') },
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  };
}
