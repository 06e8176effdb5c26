/**
 * Proves that a directory of releases has only complete files, changes atomically, and can be copied into a network
 * without internet access.
 */
import { createHash } from 'node:crypto';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from 'tar';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startStubServer } from '../../../test/faults/stub-server.ts';
import { runBundle } from '../../cmd/update-server-command.ts';
import { messageOf, type RefitError } from '../../util/errors.ts';
import { readCatalog } from '../server/catalog.ts';

const BYTES = Buffer.alloc(3_000_000, 'k0s ');
const SHA = createHash('sha256').update(BYTES).digest('hex');
const VERSION = 'v1.36.4+k0s.0';
const NEVER = new AbortController().signal;

let at = '';
beforeEach(async () => {
  at = await mkdtemp(join(tmpdir(), 'refit-bundle-'));
  onTestFinished(async () => await rm(at, { recursive: true }));
});

interface Wanted {
  readonly file?: Record<string, unknown>;
  readonly channels?: Record<string, unknown>;
}

/** Publishes the directory. Resolves with the problem; undefined if there is no problem. */
async function publish({
  file = { k0s: 'k0s' },
  channels = { stable: [{ version: VERSION }] },
}: Wanted = {}): Promise<string | undefined> {
  await writeFile(join(at, 'k0s'), BYTES);
  const releases = [{ version: VERSION, files: [{ platform: 'linux-amd64', ...file }] }];
  await writeFile(join(at, 'bundle.yaml'), JSON.stringify({ releases, channels }));
  return await bundle({ file: join(at, 'bundle.yaml') });
}

async function bundle(
  flags: Parameters<typeof runBundle>[1],
  directory = 'out',
): Promise<string | undefined> {
  return await runBundle(join(at, directory), flags, { write: () => undefined, abort: NEVER }).then(
    () => undefined,
    messageOf,
  );
}

test('a file of this machine is published under its hash', async () => {
  expect(await publish()).toBeUndefined();
  expect((await readFile(join(at, 'out', 'files', SHA))).equals(BYTES)).toBe(true);
  expect(await readCatalog(join(at, 'out'))).toEqual({
    releases: {
      [VERSION]: [{ platform: 'linux-amd64', kind: 'k0s', sha256: SHA, size: BYTES.length }],
    },
    channels: { stable: [{ version: VERSION }] },
  });
});

const ONE = { platform: 'linux-amd64', k0s: 'k0s' };
test.each([
  [
    'release',
    [
      { version: VERSION, files: [ONE] },
      { version: VERSION, files: [] },
    ],
    VERSION,
  ],
  [
    'file',
    [{ version: VERSION, files: [ONE, { ...ONE, k0s: 'other' }] }],
    `${VERSION} linux-amd64 k0s`,
  ],
])(
  'two entries for one %s are refused, because clusters would get different binaries',
  async (_what, releases, twice) => {
    const channels = { stable: [{ version: VERSION }] };
    await writeFile(join(at, 'bundle.yaml'), JSON.stringify({ releases, channels }));
    const problem = `releases: ${twice} is listed twice; keep one`;
    expect(await bundle({ file: join(at, 'bundle.yaml') }, 'twice')).toContain(problem);
  },
);

test('all that is wrong in the file of a bundle is told at once', async () => {
  const url = { platform: 'linux-amd64', k0s: 'https://example.com/k0s' };
  const releases = [
    { version: VERSION, files: [ONE, ONE] },
    { version: 'v1.35.1+k0s.0', files: [url] },
  ];
  const channels = { stable: [{ version: 'v1.34.0+k0s.0', hold: true }] };
  await writeFile(join(at, 'bundle.yaml'), JSON.stringify({ releases, channels }));
  const told = await bundle({ file: join(at, 'bundle.yaml') }, 'wrong');
  for (const each of [
    `releases: ${VERSION} linux-amd64 k0s is listed twice`,
    'release v1.35.1+k0s.0 linux-amd64 k0s: comes from a URL without a SHA-256; add k0sSha256',
    'channels.stable: v1.34.0+k0s.0 is not among the releases',
    'channels.stable: no release is for every cluster',
  ])
    expect(told).toContain(each);
});

test('whatever mode a file had, all may read it and nobody may run it', async () => {
  await writeFile(join(at, 'k0s'), '');
  await chmod(join(at, 'k0s'), 0o4700);
  expect(await publish()).toBeUndefined();
  const modeOf = async (...path: string[]): Promise<number> =>
    (await stat(join(at, ...path))).mode & 0o7777;
  expect(await modeOf('out', 'files', SHA)).toBe(0o644);
  await chmod(join(at, 'out', 'files', SHA), 0o700);
  expect(await bundle({ pack: join(at, 'all.tar') })).toBeUndefined();
  expect(await bundle({ unpack: join(at, 'all.tar') }, 'gap')).toBeUndefined();
  expect(await modeOf('gap', 'files', SHA)).toBe(0o644);
  expect(await modeOf('gap', 'catalog.json')).toBe(0o644);
});

test('a download that breaks off is resumed, and one that is there is not fetched again', async () => {
  const ranges: (string | undefined)[] = [];
  await using server = await startStubServer(({ headers }, response) => {
    ranges.push(headers.range);
    const from = Number(/\d+/.exec(headers.range ?? '')?.[0] ?? 0);
    const head = { etag: '"1"', 'content-length': BYTES.length - from };
    const part =
      from > 0
        ? { ...head, 'content-range': `bytes ${from}-${BYTES.length - 1}/${BYTES.length}` }
        : head;
    response.writeHead(from > 0 ? 206 : 200, part);
    if (from > 0) response.end(BYTES.subarray(from));
    else response.write(BYTES.subarray(0, 1_000_000), () => response.destroy());
  });
  const file = { k0s: `${server.config.server}/k0s`, k0sSha256: SHA };
  expect(await publish({ file })).toBeUndefined();
  expect(ranges).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]\d*-$/)]);
  expect(await publish({ file })).toBeUndefined();
  expect(ranges).toHaveLength(2);
  expect(await readdir(join(at, 'out', 'files'))).toEqual([SHA]);
});

test.each<readonly [string, Wanted, string]>([
  [
    'a wrong hash',
    { file: { k0s: 'k0s', k0sSha256: 'ab'.repeat(32) } },
    `its sha256 is ${SHA}, wanted abab`,
  ],
  [
    'no such file',
    { file: { k0s: 'none' } },
    'release v1.36.4+k0s.0: cannot get the file for linux-amd64',
  ],
  [
    'a URL without a hash',
    { file: { k0s: 'https://example.com/k0s' } },
    'comes from a URL without a SHA-256; add k0sSha256',
  ],
  [
    'half a hash',
    { file: { k0s: 'k0s', k0sSha256: 'ab' } },
    'releases[0].files[0].k0sSha256: "ab" is not a SHA-256: use 64 hexadecimal digits',
  ],
  [
    'a channel with another release',
    { channels: { stable: [{ version: 'v1.36.5+k0s.0' }] } },
    'v1.36.5+k0s.0 is not among the releases',
  ],
  ...[{ percent: 10 }, { hold: true }, { withdrawn: 'loses data' }].map(
    (entry): readonly [string, Wanted, string] => [
      `a channel with nothing but ${JSON.stringify(entry)}`,
      { channels: { stable: [{ version: VERSION, ...entry }] } },
      'channels.stable: no release is for every cluster',
    ],
  ),
  [
    'a channel that clients could not ask for',
    { channels: { Stable: [{ version: VERSION }] } },
    'is not a channel: use lower-case',
  ],
  ['150 percent', { channels: { stable: [{ version: VERSION, percent: 150 }] } }, 'percent'],
  ['a field that is none', { channels: { stable: [{ version: VERSION, held: true }] } }, 'held'],
])('%s: nothing is published', async (_name, wanted, problem) => {
  await publish();
  const before = await readCatalog(join(at, 'out'));
  expect(await publish(wanted)).toContain(problem);
  expect(await readCatalog(join(at, 'out'))).toEqual(before);
});

test('one archive carries everything, and only whole files are published from it', async () => {
  await publish();
  const archive = join(at, 'carried.tar');
  expect(await bundle({ pack: archive })).toBeUndefined();
  expect(await bundle({ unpack: archive }, 'gap')).toBeUndefined();
  expect(await readCatalog(join(at, 'gap'))).toEqual(await readCatalog(join(at, 'out')));
  expect((await readFile(join(at, 'gap', 'files', SHA))).equals(BYTES)).toBe(true);
  expect((await readdir(join(at, 'gap'))).toSorted()).toEqual(['catalog.json', 'files']);
});

test('a damaged file is neither packed nor unpacked', async () => {
  await publish();
  const damage = async (): Promise<void> => await writeFile(join(at, 'out', 'files', SHA), 'other');
  await damage();
  expect(await bundle({ pack: join(at, 'a.tar') })).toContain('is missing or damaged');
  await create({ file: join(at, 'bad.tar'), cwd: join(at, 'out') }, [
    'catalog.json',
    `files/${SHA}`,
  ]);
  expect(await bundle({ unpack: join(at, 'bad.tar') }, 'gap')).toContain(
    'is missing or damaged; nothing was published',
  );
  expect(await readdir(join(at, 'gap'))).not.toContain('catalog.json');
});

test('an archive writes nothing beside what it may', async () => {
  await publish();
  const evil = join(at, 'evil');
  await mkdir(join(evil, 'files'), { recursive: true });
  await writeFile(join(at, 'outside'), 'x');
  await symlink(join(at, 'outside'), join(evil, 'files', SHA));
  await writeFile(join(evil, 'catalog.json'), await readFile(join(at, 'out', 'catalog.json')));
  await create({ file: join(at, 'evil.tar'), cwd: evil, preservePaths: true }, [
    'catalog.json',
    `files/${SHA}`,
    '../outside',
  ]);
  expect(await bundle({ unpack: join(at, 'evil.tar') }, 'gap')).toContain('is missing or damaged');
  expect(await readdir(join(at, 'gap', 'files')).catch(() => [])).toEqual([]);
  expect(await readFile(join(at, 'outside'), 'utf8')).toBe('x');
});

test('a place that cannot be written is no bug of Refit', async () => {
  await publish();
  const out = join(at, 'out');
  const plain = join(at, 'plain');
  await writeFile(plain, '');
  const lineOf = async (
    directory: string,
    flags: Parameters<typeof runBundle>[1],
  ): Promise<unknown> =>
    await runBundle(directory, flags, { write: () => undefined, abort: NEVER }).catch(
      (error: RefitError) => error.line,
    );
  expect([
    await lineOf(out, { pack: join(at, 'none', 'carried.tar') }),
    await lineOf(out, { unpack: plain }),
    await lineOf(join(plain, 'out'), { file: join(at, 'bundle.yaml') }),
  ]).toEqual([
    expect.stringMatching(/^REFIT_FILE: cannot use \S+carried\.tar or \S+out: ENOENT/),
    expect.stringMatching(/^REFIT_FILE: cannot use \S+plain or \S+out: TAR_BAD_ARCHIVE/),
    expect.stringMatching(/^REFIT_FILE: cannot use \S+out: ENOTDIR/),
  ]);
});

test('the command without a task names the options that give it one', async () => {
  expect(await bundle({})).toContain('no task was given: use --file, --unpack or --pack');
});
