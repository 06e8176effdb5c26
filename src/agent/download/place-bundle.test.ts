/** Tests that airgap bundles are placed complete and only once, and that only our own bundles are removed. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as files from 'node:fs/promises';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DownloadServer, Fault } from '../../../sandbox/hosts/download-server.ts';
import { startDownloadServer } from '../../../sandbox/hosts/download-server.ts';
import { buildBundleRequest, buildFetchTools } from '../../../test/support/builders/downloads.ts';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { systemClock } from '../../util/clock.ts';
import type { Files } from '../state/durable-files.ts';
import type { BundleRequest } from './place-bundle.ts';
import { discardBundle, placeBundle } from './place-bundle.ts';

const LIMITS = { maxBytes: 1_000_000, reserveBytes: 0, totalMs: 3_600_000, stallMs: 60_000 };
const clock = new SkewedClock(systemClock, { pauses: 1 / 100 });

let directory: string;
let images: string;
let server: DownloadServer;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-bundle-'));
  images = join(directory, 'data', 'images');
  await mkdir(join(directory, 'data'));
  for (const name of ['a.tar', 'b.tar', 'c.tar', 'd.tar'])
    await writeFile(join(directory, name), contentOf(name));
  server = await serve();
});
afterEach(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

function contentOf(name: string): string {
  return name.repeat(20_000);
}

function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Sends slowly, so that a body that the client does not read is cut before its end. */
async function serve(
  faults: readonly Fault[] = [{ paceMs: 1, times: Infinity }],
): Promise<DownloadServer> {
  const names = ['a.tar', 'b.tar', 'c.tar', 'd.tar'];
  const served = Object.fromEntries(names.map((name) => [`/${name}`, join(directory, name)]));
  return await startDownloadServer({ files: served, faults });
}

function requestFor(name: string, more: Partial<BundleRequest> = {}): BundleRequest {
  return buildBundleRequest(directory, {
    url: `${server.url}/${name}`,
    version: name,
    sha256: sha256(contentOf(name)),
    limits: LIMITS,
    ...more,
  });
}

async function place(request: BundleRequest, through: Files = files): Promise<void> {
  // An agent passes everything that it knows about its host. Values in the request have priority.
  const ofTheHost = { paths: {}, version: '0.0.0' };
  await placeBundle(request, { ...buildFetchTools({ clock, files: through }), ...ofTheHost });
}

const placed = async (): Promise<string[]> => (await readdir(images)).toSorted();
const wholeRequests = (): number => server.requests.filter(({ complete }) => complete).length;

test('a bundle lies there whole, under its own name, for everybody to read', async () => {
  await place(requestFor('a.tar', { sha256: sha256(contentOf('a.tar')).toUpperCase() }));
  expect(await placed()).toEqual(['a.tar']);
  expect(await readFile(join(images, 'a.tar'), 'utf8')).toBe(contentOf('a.tar'));
  expect((await stat(join(images, 'a.tar'))).mode & 0o777).toBe(0o644);
});

test('the importer never sees a name before its bytes are whole', async () => {
  const seen: string[] = [];
  const watched: Files = {
    ...files,
    rename: async (from, to) => {
      seen.push(...(await placed()).map((name) => `${name} before`));
      await files.rename(from, to);
      const bytes = await readFile(join(images, 'a.tar'), 'utf8').catch(() => undefined);
      if (bytes !== undefined) seen.push(bytes === contentOf('a.tar') ? 'whole' : 'partial');
    },
  };
  await place(requestFor('a.tar'), watched);
  // The last rename replaces the list, after everything else is done.
  expect(seen).toEqual(['whole', 'a.tar before', 'whole']);
});

test('a data directory that is not there is not made up', async () => {
  const request = requestFor('a.tar', { imagesDirectory: join(directory, 'nowhere', 'images') });
  await expect(place(request)).rejects.toThrow(
    `there is no data directory ${join(directory, 'nowhere')}`,
  );
  expect(server.requests).toEqual([]);
});

describe('a bundle that was', () => {
  test.each(['with a sha256', 'without a sha256'])(
    'placed before %s is not downloaded again',
    async (kind) => {
      const request = requestFor('a.tar', kind === 'without a sha256' ? { sha256: undefined } : {});
      await place(request);
      await place(request);
      expect(server.requests.map(({ status }) => status)).toEqual(
        kind === 'without a sha256' ? [200, 304] : [200],
      );
      expect(await placed()).toEqual(['a.tar']);
    },
  );

  test('placed before from a server that knows no conditions is not downloaded again', async () => {
    let asked = 0;
    const plain = createServer((_request, response) => {
      response.writeHead(200, { etag: '"1"', 'content-length': 5 });
      if (asked++ === 0) response.end('bytes');
      else response.flushHeaders();
    });
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(plain.address() as AddressInfo).port}/a.tar`;
    try {
      await place(requestFor('a.tar', { url, sha256: undefined }));
      await place(requestFor('a.tar', { url, sha256: undefined }));
      expect(asked).toBe(2);
      expect(await readFile(join(images, 'a.tar'), 'utf8')).toBe('bytes');
    } finally {
      plain.closeAllConnections();
      plain.close();
    }
  });

  test('placed before and damaged since is downloaded again', async () => {
    await place(requestFor('a.tar'));
    await writeFile(join(images, 'a.tar'), 'damaged');
    await place(requestFor('a.tar'));
    expect(wholeRequests()).toBe(2);
    expect(await readFile(join(images, 'a.tar'), 'utf8')).toBe(contentOf('a.tar'));
  });

  test('placed before is replaced if the server has another one by now', async () => {
    const request = requestFor('a.tar', { sha256: undefined });
    await place(request);
    await server.stop();
    await writeFile(join(directory, 'a.tar'), 'newer');
    server = await serve();
    await place({ ...request, url: `${server.url}/a.tar` });
    expect(await readFile(join(images, 'a.tar'), 'utf8')).toBe('newer');
  });

  test('put there by somebody else is enough if its bytes are right', async () => {
    await mkdir(images);
    await writeFile(join(images, 'a.tar'), contentOf('a.tar'));
    await place(requestFor('a.tar'));
    expect(server.requests).toEqual([]);
    for (const name of ['b.tar', 'c.tar', 'd.tar']) await place(requestFor(name));
    expect(await placed()).toEqual(['a.tar', 'c.tar', 'd.tar']);
  });

  test('stalled in its download is continued where it was', async () => {
    await server.stop();
    server = await serve([{ stallAfterBytes: 40_000, times: 2 }]);
    await place(requestFor('a.tar'));
    expect(server.requests.map(({ from }) => from)).toEqual([0, 40_000, 80_000]);
    expect(await placed()).toEqual(['a.tar']);
  });
});

test('of what was placed the newest two stay, and what is not ours stays in any case', async () => {
  await mkdir(images);
  await writeFile(join(images, 'theirs.tar'), 'theirs');
  for (const name of ['a.tar', 'b.tar', 'c.tar']) await place(requestFor(name));
  expect(await placed()).toEqual(['b.tar', 'c.tar', 'theirs.tar']);
  // A bundle that is requested again counts as the newest bundle.
  await place(requestFor('b.tar'));
  await writeFile(join(images, 'c.tar'), 'replaced by somebody');
  await place(requestFor('d.tar'));
  expect(await placed()).toEqual(['b.tar', 'c.tar', 'd.tar', 'theirs.tar']);
  await place(requestFor('a.tar'));
  expect(await placed()).toEqual(['a.tar', 'c.tar', 'd.tar', 'theirs.tar']);
});

test('a list that the disk withholds is not begun anew: what stands on it would stay for ever', async () => {
  for (const name of ['a.tar', 'b.tar']) await place(requestFor(name));
  const withheld = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
  const through: Files = { ...files, readFile: async () => await Promise.reject(withheld) };
  await expect(place(requestFor('c.tar'), through)).rejects.toThrow('EIO');
  await place(requestFor('c.tar'));
  expect(await placed()).toEqual(['b.tar', 'c.tar']);
});

test('wrong bytes are not placed', async () => {
  await expect(place(requestFor('a.tar', { sha256: 'ab'.repeat(32) }))).rejects.toThrow(
    /sha256 of the download is/,
  );
  expect(await placed()).toEqual([]);
});

test('a crash before any change of a file costs no second download, and leaves nothing behind', async () => {
  const counted = async (at: number): Promise<number> => {
    let changes = 0;
    const mortal = async <T>(act: () => Promise<T>): Promise<T> => {
      if (changes++ === at) throw new Error('killed');
      return await act();
    };
    const through: Files = {
      ...files,
      rename: async (from, to) => await mortal(async () => await files.rename(from, to)),
      rm: async (path, options) => await mortal(async () => await files.rm(path, options)),
    };
    const request = requestFor('c.tar');
    await place(request, through).catch(() => undefined);
    await place(request);
    await discardBundle(request, files);
    return changes;
  };
  await place(requestFor('a.tar'));
  await place(requestFor('b.tar'));
  const changes = await counted(Infinity);
  expect(changes).toBeGreaterThan(4);
  for (let at = 0; at < changes; at++) {
    await rm(directory, { recursive: true });
    await mkdir(join(directory, 'data'), { recursive: true });
    await place(requestFor('a.tar'));
    await place(requestFor('b.tar'));
    const before = wholeRequests();
    await counted(at);
    expect(wholeRequests() - before).toBe(1);
    expect(await placed()).toEqual(['b.tar', 'c.tar']);
    expect((await readdir(join(directory, 'data'))).toSorted()).toEqual(['images']);
    expect((await readdir(directory)).toSorted()).toEqual(['airgap-bundles.json', 'data']);
  }
});
