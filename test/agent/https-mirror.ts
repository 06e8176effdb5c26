/** A mirror over HTTPS whose authority no host knows, unless it is started with the file that it leaves. */
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
  /** For another server on 127.0.0.1, by the same authority, with no name but these. */
  identify(...names: string[]): Identity;
  /** What makes a process trust it, and nobody else. */
  readonly trust: Readonly<Record<'SSL_CERT_FILE' | 'SSL_CERT_DIR', string>>;
}

/** It is 127.0.0.1, and whatever `names` say. */
export async function startHttpsMirror(
  script: Script,
  names: readonly string[] = [],
): Promise<HttpsMirror> {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-authority-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const validity = validFrom(systemClock.now());
  // A name of its own: of two authorities of one name, another error tells.
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
